package pawl

import (
	"context"
	"errors"

	"example.org/pawl/internal/fault"
)

// listen begins to watch the key for those who ask the holder to let go, if the program wants to be
// told. With the engine's lock.
func (h *held) listen() {
	if h.options.onAsked == nil {
		return
	}
	c := h.c
	c.engine.Go(func() {
		ctx, cancel := context.WithCancel(h.ctx)
		defer cancel()
		w := c.newWatch(WatchKey(h.key))
		defer w.end()
		for {
			event, err := w.next(ctx)
			c.engine.Lock()
			h.askedError = nil
			var e *fault.Error
			if errors.As(err, &e) {
				h.askedError = e
			}
			c.engine.Unlock()
			switch {
			case e != nil && e.Code == "full":
				// The node has no room for the watch; there may be some later.
				if w.rest(ctx) != nil {
					return
				}
			case err != nil:
				return
			case event.Type == EventAsked:
				asked := Asked{Key: h.key, By: event.By, To: event.To, Priority: int32(event.Priority)}
				c.callback(func() {
					if h.ctx.Err() == nil {
						h.options.onAsked(asked)
					}
				})
			}
		}
	})
}

// AskedError returns why OnAsked is not called although others may ask; nil: it is. ErrFull: the node
// has no room for more watches of this client (watches_per_client in its configuration); the client
// asks again while the lock is held, so this may pass. Other errors are final. The lock is held
// nevertheless.
func (l *Lock) AskedError() error {
	e := l.h.c.engine
	e.Lock()
	defer e.Unlock()
	if l.h.askedError == nil {
		return nil
	}
	return l.h.askedError
}
