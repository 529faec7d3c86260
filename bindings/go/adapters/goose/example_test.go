package pawlgoose_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"testing/fstest"

	"example.org/pawl"
	pawlgoose "example.org/pawl/adapters/goose"
	"example.org/pawl/pawltest"
	"github.com/pressly/goose/v3"
)

func Example() {
	server, err := pawltest.Run() // Your program has a cluster, which PAWL_ENDPOINTS names.
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	client, err := pawl.Dial(context.Background(), pawl.WithEndpoints(server.Endpoint))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	migrations := fstest.MapFS{"1_users.sql": {Data: []byte("-- +goose Up\nCREATE TABLE users (name TEXT);\n")}}

	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations,
		goose.WithLocker(pawlgoose.New(client, "migrate/shop")))
	if err != nil {
		log.Fatal(err)
	}
	results, err := provider.Up(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(results), "migration")
	// Output: 1 migration
}
