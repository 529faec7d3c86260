package pawltusd_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"example.org/pawl"
	pawltusd "example.org/pawl/adapters/tusd"
	"example.org/pawl/pawltest"
	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"
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
	dir, err := os.MkdirTemp("", "uploads")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	composer := handler.NewStoreComposer()
	filestore.New(dir).UseIn(composer)
	pawltusd.New(client).UseIn(composer)
	tusd, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer})
	if err != nil {
		log.Fatal(err)
	}
	uploads := httptest.NewServer(http.StripPrefix("/files/", tusd))
	defer uploads.Close()
	answer, err := http.Get(uploads.URL + "/files/nothing")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	fmt.Println(answer.StatusCode)
	// Output: 404
}
