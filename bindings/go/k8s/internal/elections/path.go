// Package elections plays elections between real electors of client-go over a network that it makes
// itself, and measures whether two of them believed at once that they lead.
package elections

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// A Path is the network between one candidate and what it asks. Requests and answers take a few
// milliseconds each, until the network fails.
type Path struct {
	mu      sync.Mutex
	armed   bool
	late    time.Duration
	cut     bool
	least   time.Duration // how late answers are
	most    time.Duration
	once    sync.Once
	renewed chan struct{} // closed when the renewal whose answer is late has been carried out
}

// NewPath returns a network that works.
func NewPath() *Path { return &Path{renewed: make(chan struct{})} }

// Fail makes the answer of the next renewal late, and lets nothing through afterwards. With 0 that
// answer comes as it always did.
func (p *Path) Fail(late time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.late = true, late
}

// Slow makes each answer late by a time drawn from 0 to most.
func (p *Path) Slow(most time.Duration) { p.delay(0, most) }

// Late makes each answer late by d.
func (p *Path) Late(d time.Duration) { p.delay(d, d) }

func (p *Path) delay(least, most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.least, p.most = least, most
}

// Cut lets nothing through while it is true. What is on its way arrives.
func (p *Path) Cut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

// Renewed is closed when the last renewal has been carried out.
func (p *Path) Renewed() <-chan struct{} { return p.renewed }

// Do carries a request to the other side, lets it act there, and carries its answer back. It
// returns the error of the context if that ends before.
func (p *Path) Do(ctx context.Context, renewal bool, act func() error) error {
	p.mu.Lock()
	cut, late := p.cut, time.Duration(0)
	last := p.armed && !cut && renewal
	if last {
		p.cut, p.armed, late = true, false, p.late
	}
	late += p.least
	if p.most > p.least {
		late += rand.N(p.most - p.least)
	}
	p.mu.Unlock()
	if cut {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := Pass(ctx, some()); err != nil {
		return err
	}
	if err := act(); err != nil {
		return errors.Join(err, Pass(ctx, some()))
	}
	if last {
		p.once.Do(func() { close(p.renewed) })
	}
	return Pass(ctx, some()+late)
}

func some() time.Duration { return time.Millisecond + rand.N(4*time.Millisecond) }

// Pass waits, or returns the error of the context if that ends before.
func Pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
