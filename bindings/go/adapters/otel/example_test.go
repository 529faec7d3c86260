package pawlotel_test

import (
	"context"
	"fmt"
	"log"

	"example.org/pawl"
	pawlotel "example.org/pawl/adapters/otel"
	"example.org/pawl/pawltest"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func Example() {
	server, err := pawltest.Run() // a server to try it with
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()
	// In place of the exporter of your program.
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))
	ctx, span := provider.Tracer("job").Start(context.Background(), "job")

	client, err := pawl.Dial(ctx, pawl.WithEndpoints(server.Endpoint),
		pawl.WithHooks(pawlotel.Hooks(pawlotel.WithTracerProvider(provider))))
	if err != nil {
		log.Fatal(err)
	}
	err = client.Do(ctx, "report", func(ctx context.Context, token uint64) error {
		return nil // the work
	})
	if err != nil {
		log.Fatal(err)
	}
	client.Close()
	span.End()
	for _, s := range exporter.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output:
	// pawl ping
	// pawl acquire
	// pawl release
	// job
}
