package pawlk8s

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A term begins with a grant. The elector believes in it once it was told that it leads.
type term struct {
	lock   holding
	record resourcelock.LeaderElectionRecord
	led    bool        // the elector was told that it leads
	lapsed bool        // and its latest renewal has failed
	timer  *time.Timer // gives the lock back unless the elector comes for it
	over   chan struct{}
}

// current returns the present term, or nil.
func (l *Lock) current() *term {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

// begin makes a grant the present term. The elector has a moment to take it.
func (l *Lock) begin(lock holding, record resourcelock.LeaderElectionRecord) *term {
	t := &term{lock: lock, record: record, over: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = t
	t.timer = time.AfterFunc(keepGrant, func() { l.giveBack(t) })
	go func() {
		select {
		case <-lock.Done():
			l.end(t)
		case <-t.over:
		}
	}()
	return t
}

// comes gives the elector, which has come for a grant, time to take it.
func (l *Lock) comes(t *term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == t && !t.led {
		t.timer.Reset(l.lease)
	}
}

// await gives a grant that the elector has not taken a moment more.
func (l *Lock) await(t *term) {
	if l.term == t && !t.led {
		t.timer.Reset(keepGrant)
	}
}

// end ends a term whose lock is lost.
func (l *Lock) end(t *term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(t)
}

// drop forgets a term that the program has not ended. If the elector believed in it, the contexts
// that Guard has made end.
func (l *Lock) drop(t *term) (mine bool) {
	if mine = l.forget(t); mine && t.led {
		for cancel := range l.guards {
			(*cancel)(ErrLost)
		}
	}
	return mine
}

// forget drops a term if it is the present one.
func (l *Lock) forget(t *term) bool {
	if l.term != t {
		return false
	}
	l.term = nil
	t.timer.Stop()
	close(t.over)
	if t.led {
		l.seen = &t.record
	}
	return true
}

// giveBack releases a lock for which the elector has not come. If it led, its lease would be over
// now by the elector's last renewal: the elector is gone, and its work had that time to end.
func (l *Lock) giveBack(t *term) {
	l.mu.Lock()
	mine := l.drop(t)
	l.mu.Unlock()
	if !mine {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.config.requestTimeout())
	defer cancel()
	_ = t.lock.Release(ctx) // If it fails, the lease runs out.
}

// release ends the term because the elector wants that.
func (l *Lock) release(ctx context.Context) error {
	l.mu.Lock()
	t := l.term
	if t == nil {
		l.mu.Unlock()
		return fmt.Errorf("pawlk8s: %s: there is nothing to release: %w", l.name, errLost)
	}
	if t.lapsed {
		l.mu.Unlock()
		// The elector releases before it tells anybody that it does not lead any more.
		return fmt.Errorf("pawlk8s: %s is not released, because its renewal has failed and the work "+
			"of this leader may still go on: its lease runs out", l.name)
	}
	l.forget(t)
	l.mu.Unlock()
	if err := t.lock.Release(ctx); err != nil {
		return fmt.Errorf("pawlk8s: release %s: %w", l.name, err)
	}
	return nil
}
