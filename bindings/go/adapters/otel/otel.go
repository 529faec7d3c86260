// Package pawlotel makes OpenTelemetry spans of what a client of Pawl does.
//
//	client, err := pawl.Dial(ctx, pawl.WithHooks(pawlotel.Hooks()))
package pawlotel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.org/pawl"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// The attributes of spans.
const (
	// KeyAttribute is the key, and MethodAttribute the method of the client protocol.
	KeyAttribute    = attribute.Key("pawl.key")
	MethodAttribute = attribute.Key("pawl.method")
	// CodeAttribute is the code of the error, as in docs/client-protocol.md. A request that succeeds
	// has none.
	CodeAttribute = attribute.Key("pawl.code")
	// HolderAttribute is the owner of a key that could not be acquired because it is held.
	HolderAttribute = attribute.Key("pawl.holder")
	// TokenAttribute is the token of a lock that is lost, and LeftAttribute for how many milliseconds
	// it could still be trusted when that was found out.
	TokenAttribute = attribute.Key("pawl.token")
	LeftAttribute  = attribute.Key("pawl.left_ms")
)

type config struct {
	provider   trace.TracerProvider
	attributes []attribute.KeyValue
}

// An Option sets one thing of the spans.
type Option func(*config)

// WithTracerProvider sets where the spans go. The default is otel.GetTracerProvider().
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(c *config) { c.provider = provider }
}

// WithAttributes sets attributes that all spans get.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return func(c *config) { c.attributes = append(c.attributes, attributes...) }
}

// Hooks returns hooks that make a span of each request, from the call to its end, waiting included:
// a child of the span in the context of the call, of the kind client, named "pawl METHOD". The nodes are
// told the span as the traceparent of the request, and write it into their logs and audit files. What the
// client does by itself, such as renewals, makes no spans. A request that is refused because somebody else holds the key, or whose wait is over, has the attribute
// pawl.code, and no error: that is an answer. Any other error is one of the span.
//
// A lock that is lost is a span of its own, "pawl lost", without a parent and with an error.
func Hooks(options ...Option) pawl.Hooks {
	c := config{provider: otel.GetTracerProvider()}
	for _, option := range options {
		option(&c)
	}
	t := &tracing{c.provider.Tracer("example.org/pawl/adapters/otel",
		trace.WithInstrumentationVersion(pawl.Version)), c.attributes}
	return pawl.Hooks{RequestStarted: t.request, Lost: t.lost}
}

type tracing struct {
	tracer     trace.Tracer
	attributes []attribute.KeyValue
}

func (t *tracing) with(attributes ...attribute.KeyValue) trace.SpanStartEventOption {
	return trace.WithAttributes(append(slices.Clone(t.attributes), attributes...)...)
}

func (t *tracing) request(ctx context.Context, r *pawl.Request) func(error) {
	attributes := []attribute.KeyValue{MethodAttribute.String(r.Method)}
	if r.Key != "" {
		attributes = append(attributes, KeyAttribute.String(r.Key))
	}
	ctx, span := t.tracer.Start(ctx, "pawl "+r.Method, trace.WithSpanKind(trace.SpanKindClient),
		t.with(attributes...))
	r.Trace = Traceparent(ctx)
	return func(err error) {
		if err != nil {
			fail(span, err)
		}
		span.End()
	}
}

func fail(span trace.Span, err error) {
	var said *pawl.Error
	if errors.As(err, &said) {
		span.SetAttributes(CodeAttribute.String(said.Code))
	}
	var held *pawl.HeldError
	if errors.As(err, &held) {
		if held.Holder.Owner != "" {
			span.SetAttributes(HolderAttribute.String(held.Holder.Owner))
		}
		return
	}
	if errors.Is(err, context.Canceled) {
		span.AddEvent("canceled")
		return
	}
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
}

func (t *tracing) lost(l *pawl.LostError) {
	_, span := t.tracer.Start(context.Background(), "pawl lost", trace.WithNewRoot(),
		t.with(KeyAttribute.String(l.Key), TokenAttribute.Int64(int64(l.Token)),
			CodeAttribute.String(l.Code()), LeftAttribute.Int64(l.Left.Milliseconds())))
	span.SetStatus(codes.Error, l.Error())
	span.End()
}

// Traceparent returns the traceparent of the span in the context, for pawl.WithTrace: the client hands it
// to the nodes with every request that has no span of its own, such as a renewal. It is empty if there is
// no span.
func Traceparent(ctx context.Context) string {
	s := trace.SpanContextFromContext(ctx)
	if !s.IsValid() {
		return ""
	}
	return fmt.Sprintf("00-%s-%s-%s", s.TraceID(), s.SpanID(), s.TraceFlags())
}
