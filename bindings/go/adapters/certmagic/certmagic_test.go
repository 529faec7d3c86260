package pawlcertmagic_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"example.org/pawl"
	pawlcertmagic "example.org/pawl/adapters/certmagic"
	"example.org/pawl/pawltest"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

var (
	_ certmagic.Storage          = (*pawlcertmagic.Storage)(nil)
	_ certmagic.TryLocker        = (*pawlcertmagic.Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*pawlcertmagic.Storage)(nil)
)

const (
	domain = "www.example.com"
	issue  = "certmagic/issue_cert_" + domain
	within = 10 * time.Second
)

// authority is an issuer that signs what it is asked for.
type authority struct {
	key    *ecdsa.PrivateKey
	issued atomic.Int32
	// before is called before it signs.
	before func(ctx context.Context) error
}

func newAuthority(before func(context.Context) error) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return &authority{key: key, before: before}
}

func (*authority) IssuerKey() string { return "test" }

func (a *authority) Issue(ctx context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if err := a.before(ctx); err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(int64(a.issued.Add(1))),
		DNSNames: request.DNSNames, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// newConfig returns a certmagic of its own, as another process has it.
func newConfig(t *testing.T, storage certmagic.Storage, issuer certmagic.Issuer) *certmagic.Config {
	t.Helper()
	logger := zap.NewNop()
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{Logger: logger,
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil }})
	t.Cleanup(cache.Stop)
	config = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{issuer},
		Logger: logger})
	return config
}

// until waits until as many wait for the key.
func until(ctx context.Context, client *pawl.Client, key string, waiting int) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for ; ; time.Sleep(time.Millisecond) {
		waiters, _, err := client.Waiters(ctx, key)
		if err != nil || len(waiters) == waiting {
			return err
		}
	}
}

func TestTwoServersObtainACertificateOnce(t *testing.T) {
	server := pawltest.Start(t)
	watcher := server.Client(t)
	// The first to issue goes on when the other one waits for the lock.
	issuer := newAuthority(func(ctx context.Context) error { return until(ctx, watcher, issue, 1) })
	path := t.TempDir()
	outcomes := make(chan error, 2)
	for range cap(outcomes) {
		storage := pawlcertmagic.New(server.Client(t), &certmagic.FileStorage{Path: path})
		config := newConfig(t, storage, issuer)
		go func() { outcomes <- config.ObtainCertSync(limited(t), domain) }()
	}
	for range cap(outcomes) {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	if issued := issuer.issued.Load(); issued != 1 {
		t.Errorf("%d certificates were issued", issued)
	}
	if entry, err := watcher.Get(t.Context(), issue, pawl.Quorum()); err != nil || entry.Held {
		t.Errorf("in the end the lock is %+v %v", entry, err)
	}
	storage := &certmagic.FileStorage{Path: path}
	if locks, err := storage.List(t.Context(), "locks", true); err == nil && len(locks) > 0 {
		t.Errorf("the storage was locked, too: %v", locks)
	}
}

func TestAnotherServerGoesOnWhenTheHolderHasDied(t *testing.T) {
	server := pawltest.Start(t)
	path := t.TempDir()
	dead := server.Client(t)
	storage := pawlcertmagic.New(dead, &certmagic.FileStorage{Path: path}, pawlcertmagic.With(pawl.Lease(time.Second)))
	obtaining := make(chan struct{})
	stuck := newConfig(t, storage, newAuthority(func(ctx context.Context) error {
		close(obtaining)
		<-ctx.Done()
		return ctx.Err()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = stuck.ObtainCertSync(ctx, domain)
	}()
	<-obtaining
	dead.Abandon()
	issuer := newAuthority(func(context.Context) error { return nil })
	other := pawlcertmagic.New(server.Client(t), &certmagic.FileStorage{Path: path})
	if err := newConfig(t, other, issuer).ObtainCertSync(t.Context(), domain); err != nil {
		t.Error(err)
	}
	if issued := issuer.issued.Load(); issued != 1 {
		t.Errorf("%d certificates were issued", issued)
	}
	cancel()
	<-ended
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

func TestALostLockIsToldAtItsRenewal(t *testing.T) {
	const name = "issue_cert_" + domain
	server, ctx := pawltest.Start(t), limited(t)
	admin := server.Client(t)
	storage := pawlcertmagic.New(server.Client(t), &certmagic.FileStorage{Path: t.TempDir()})
	if err := storage.Lock(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := storage.RenewLockLease(ctx, name, time.Hour); err != nil {
		t.Errorf("the renewal of a lock that is held: %v", err)
	}
	if _, err := admin.Call(ctx, "break", map[string]any{"key": issue, "now": true}); err != nil {
		t.Fatal(err)
	}
	if err := storage.RenewLockLease(ctx, name, time.Hour); !errors.Is(err, pawl.ErrLost) {
		t.Errorf("the renewal of a lock that is lost: %v", err)
	}
	// A later lock of the same name must not be released in the place of the one that is lost.
	if err := storage.Lock(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := storage.Unlock(ctx, name); err != nil {
		t.Errorf("the unlock of a lock that is lost: %v", err)
	}
	if entry, err := admin.Get(ctx, issue, pawl.Quorum()); err != nil || !entry.Held {
		t.Errorf("the later lock: %+v %v", entry, err)
	}
	if err := storage.Unlock(ctx, name); err != nil {
		t.Error(err)
	}
	if err := storage.Unlock(ctx, name); err == nil {
		t.Error("one unlock more than locks")
	}
}

func TestTryLockDoesNotWait(t *testing.T) {
	server, ctx := pawltest.Start(t), limited(t)
	one := pawlcertmagic.New(server.Client(t), &certmagic.FileStorage{Path: t.TempDir()}, pawlcertmagic.Prefix("tls/"))
	other := pawlcertmagic.New(server.Client(t), one.Storage, pawlcertmagic.Prefix("tls/"))
	var got []bool
	try := func(s *pawlcertmagic.Storage) {
		ok, err := s.TryLock(ctx, "ari_1")
		if err != nil {
			t.Error(err)
		}
		got = append(got, ok)
	}
	try(one)
	try(other)
	try(one)
	if err := one.Unlock(ctx, "ari_1"); err != nil {
		t.Error(err)
	}
	try(other)
	if want := []bool{true, false, false, true}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if err := other.Unlock(ctx, "ari_1"); err != nil {
		t.Error(err)
	}
}

func TestALockEndsItsWaitWithTheContext(t *testing.T) {
	server, ctx := pawltest.Start(t), limited(t)
	storage := pawlcertmagic.New(server.Client(t), &certmagic.FileStorage{Path: t.TempDir()})
	if err := storage.Lock(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := storage.Lock(soon, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := storage.Unlock(ctx, "a"); err != nil {
		t.Error(err)
	}
	if err := storage.Lock(ctx, "a"); err != nil {
		t.Errorf("after the wait that was ended: %v", err)
	}
}
