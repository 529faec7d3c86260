package pawlcertmagic_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"example.org/pawl"
	pawlcertmagic "example.org/pawl/adapters/certmagic"
	"example.org/pawl/pawltest"
	"github.com/caddyserver/certmagic"
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
	path, err := os.MkdirTemp("", "certmagic")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(path)

	storage := pawlcertmagic.New(client, &certmagic.FileStorage{Path: path})
	certmagic.Default.Storage = storage

	// What certmagic does when it obtains a certificate:
	if err := storage.Lock(context.Background(), "issue_cert_www.example.com"); err != nil {
		log.Fatal(err)
	}
	fmt.Println("no other server obtains it now")
	if err := storage.Unlock(context.Background(), "issue_cert_www.example.com"); err != nil {
		log.Fatal(err)
	}
	// Output: no other server obtains it now
}
