package pawlotel_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"example.org/pawl"
	pawlotel "example.org/pawl/adapters/otel"
	"example.org/pawl/internal/leak"
	"example.org/pawl/pawltest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// recording returns a provider that keeps its spans.
func recording(t *testing.T) (*tracetest.InMemoryExporter, *sdk.TracerProvider) {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(kept))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return kept, provider
}

func find(t *testing.T, kept *tracetest.InMemoryExporter, name string) tracetest.SpanStub {
	t.Helper()
	for _, span := range kept.GetSpans() {
		if span.Name == name {
			return span
		}
	}
	t.Fatalf("there is no span %q in %v", name, kept.GetSpans().Snapshots())
	return tracetest.SpanStub{}
}

func value(span tracetest.SpanStub, key attribute.Key) string {
	for _, a := range span.Attributes {
		if a.Key == key {
			return a.Value.Emit()
		}
	}
	return ""
}

func TestARequestIsAChildOfTheSpanOfItsCall(t *testing.T) {
	leak.Check(t)
	kept, provider := recording(t)
	c := pawltest.Start(t).Client(t, pawl.WithHooks(pawlotel.Hooks(
		pawlotel.WithTracerProvider(provider), pawlotel.WithAttributes(attribute.String("deployment", "x")))))
	ctx, parent := provider.Tracer("test").Start(t.Context(), "report")
	l, err := c.Lock(ctx, "k")
	must(t, err)
	parent.End()
	must(t, l.Release(t.Context()))
	span := find(t, kept, "pawl acquire")
	if span.Parent.SpanID() != parent.SpanContext().SpanID() || span.SpanKind != trace.SpanKindClient ||
		span.Status.Code != codes.Unset || span.EndTime.Before(span.StartTime) {
		t.Errorf("%+v", span)
	}
	if value(span, pawlotel.KeyAttribute) != "k" || value(span, pawlotel.MethodAttribute) != "acquire" ||
		value(span, pawlotel.CodeAttribute) != "" || value(span, "deployment") != "x" {
		t.Errorf("%v", span.Attributes)
	}
}

func TestAKeyThatIsHeldIsAnAnswerAndNoError(t *testing.T) {
	leak.Check(t)
	kept, provider := recording(t)
	server := pawltest.Start(t)
	_, err := server.Client(t, pawl.WithOwner("one")).Lock(t.Context(), "k")
	must(t, err)
	c := server.Client(t, pawl.WithHooks(pawlotel.Hooks(pawlotel.WithTracerProvider(provider))))
	if _, err = c.Lock(t.Context(), "k"); !errors.Is(err, pawl.ErrHeld) {
		t.Fatal(err)
	}
	span := find(t, kept, "pawl acquire")
	if span.Status.Code != codes.Unset || value(span, pawlotel.CodeAttribute) != "held" ||
		value(span, pawlotel.HolderAttribute) != "one" {
		t.Errorf("%+v", span)
	}
	kept.Reset()
	_, err = c.Lock(t.Context(), "k", pawl.Wait(20*time.Millisecond))
	if !errors.Is(err, pawl.ErrTimeout) {
		t.Fatal(err)
	}
	span = find(t, kept, "pawl acquire")
	if span.Status.Code != codes.Unset || value(span, pawlotel.CodeAttribute) != "timeout" ||
		span.EndTime.Sub(span.StartTime) < 15*time.Millisecond {
		t.Errorf("%+v", span)
	}
}

func TestAFailureIsAnErrorOfTheSpan(t *testing.T) {
	leak.Check(t)
	kept, provider := recording(t)
	_, err := pawl.Dial(t.Context(), pawl.WithEndpoints("127.0.0.1:1"), pawl.WithTimeout(100*time.Millisecond),
		pawl.WithHooks(pawlotel.Hooks(pawlotel.WithTracerProvider(provider))))
	if !errors.Is(err, pawl.ErrUnreachable) {
		t.Fatal(err)
	}
	span := find(t, kept, "pawl ping")
	if span.Status.Code != codes.Error || value(span, pawlotel.CodeAttribute) != "unreachable" ||
		len(span.Events) != 1 {
		t.Errorf("%+v", span)
	}
}

func TestALossIsASpan(t *testing.T) {
	leak.Check(t)
	kept, provider := recording(t)
	c := pawltest.Start(t).Client(t, pawl.WithLogger(slog.New(slog.DiscardHandler)),
		pawl.WithHooks(pawlotel.Hooks(pawlotel.WithTracerProvider(provider))))
	l, err := c.Lock(t.Context(), "k", pawl.Lease(600*time.Millisecond))
	must(t, err)
	_, err = c.Call(t.Context(), "break", map[string]any{"key": "k", "now": true})
	must(t, err)
	<-l.Done()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if len(kept.GetSpans()) == 4 { // ping, acquire, break, lost
			break
		} else if time.Now().After(end) {
			t.Fatal("no span of the loss")
		}
	}
	span := find(t, kept, "pawl lost")
	if span.Status.Code != codes.Error || value(span, pawlotel.KeyAttribute) != "k" ||
		value(span, pawlotel.TokenAttribute) == "" || value(span, pawlotel.CodeAttribute) == "" {
		t.Errorf("%+v", span)
	}
}

// wire keeps what is sent.
type wire struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

type tapped struct {
	net.Conn
	wire *wire
}

func (c tapped) Write(p []byte) (int, error) {
	c.wire.mu.Lock()
	c.wire.sent.Write(p)
	c.wire.mu.Unlock()
	return c.Conn.Write(p)
}

func (w *wire) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.sent.Bytes(), []byte(text))
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return tapped{conn, w}, err
}

func TestTheNodeIsToldTheSpanOfEachRequest(t *testing.T) {
	leak.Check(t)
	kept, provider := recording(t)
	var w wire
	c := pawltest.Start(t).Client(t, pawl.WithDialer(w.dial), pawl.WithHooks(pawlotel.Hooks(pawlotel.WithTracerProvider(provider))))
	l, err := c.Lock(t.Context(), "k", pawl.Lease(time.Minute))
	must(t, err)
	must(t, l.Extend(t.Context(), 0))
	must(t, l.Shorten(t.Context(), 30*time.Second))
	_, err = l.Update(t.Context(), []byte("v"))
	must(t, err)
	must(t, l.Release(t.Context()))
	spans := kept.GetSpans()
	if len(spans) != 6 { // with the ping
		t.Errorf("%v", spans.Snapshots())
	}
	for i, method := range []string{"ping", "acquire", "extend", "extend", "update", "release"} {
		of := trace.ContextWithSpanContext(context.Background(), spans[i].SpanContext)
		if spans[i].Name != "pawl "+method || !w.has(pawlotel.Traceparent(of)) {
			t.Errorf("the nodes are not told the span %s", spans[i].Name)
		}
	}
}

func TestTheNodeIsToldTheTraceOfTheClient(t *testing.T) {
	leak.Check(t)
	_, provider := recording(t)
	ctx, span := provider.Tracer("test").Start(t.Context(), "job")
	defer span.End()
	trace := pawlotel.Traceparent(ctx)
	if want := "00-" + span.SpanContext().TraceID().String() + "-" +
		span.SpanContext().SpanID().String() + "-01"; trace != want {
		t.Errorf("the traceparent is %q and not %q", trace, want)
	}
	var w wire
	c := pawltest.Start(t).Client(t, pawl.WithTrace(trace), pawl.WithDialer(w.dial))
	_, err := c.Lock(t.Context(), "k")
	must(t, err)
	if !w.has(trace) {
		t.Error("the traceparent was not sent")
	}
	if trace := pawlotel.Traceparent(t.Context()); trace != "" {
		t.Errorf("there is no span, and the traceparent is %q", trace)
	}
}
