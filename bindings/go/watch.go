package pawl

type watches struct{}

type watch struct{}

func newWatches(*Client) *watches         { return &watches{} }
func (w *watches) broken()                {}
func (w *watches) listening() bool        { return false }
func (w *watches) deliver(map[string]any) {}
func (w *watches) close()                 {}
func (h *held) listen()                   {}
func (h *held) stopListening()            {}
