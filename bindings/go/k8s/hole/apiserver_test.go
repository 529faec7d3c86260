package hole

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An apiServer keeps Lease objects as an API server does: a write names the version that it
// replaces, and is refused with a conflict if that is not the present one.
type apiServer struct {
	mu      sync.Mutex
	version int
	leases  map[string]*coordinationv1.Lease
}

func newAPIServer() *apiServer {
	return &apiServer{leases: map[string]*coordinationv1.Lease{}}
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sent coordinationv1.Lease
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
	}
	name := sent.Name
	if r.Method != http.MethodPost {
		name = r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	}
	stored := s.leases[name]
	switch {
	case r.Method == http.MethodPost && stored != nil:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, name+" exists")
		return
	case r.Method != http.MethodPost && stored == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no "+name)
		return
	case r.Method == http.MethodPut && sent.ResourceVersion != stored.ResourceVersion:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, name+" was modified")
		return
	}
	if r.Method != http.MethodGet {
		s.version++
		sent.ResourceVersion = strconv.Itoa(s.version)
		s.leases[name] = &sent
		stored = &sent
	}
	answer(w, http.StatusOK, stored)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	answer(w, code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Reason:   reason,
		Code:     int32(code),
		Message:  message,
	})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
