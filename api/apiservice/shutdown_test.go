package apiservice_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/testkit"
)

// tracedStore records the calls of a request. The first call waits until release is closed.
type tracedStore struct {
	*linkstore.Store
	entered chan struct{} // closed when the first call begins
	release chan struct{}

	mu    sync.Mutex
	steps []string
}

func (s *tracedStore) step(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, name)
}

func (s *tracedStore) TokenByDigest(ctx context.Context, digest [32]byte) (schema.Token, schema.Account, error) {
	close(s.entered)
	<-s.release
	s.step("token is checked")
	return s.Store.TokenByDigest(ctx, digest)
}

func (s *tracedStore) Links(
	ctx context.Context, accountID int64, filter schema.LinkFilter, page int64,
) ([]schema.Link, int64, error) {
	s.step("links are read")
	return s.Store.Links(ctx, accountID, filter, page)
}

func (s *tracedStore) UseTokens(ctx context.Context, usedAt map[int64]time.Time) error {
	s.step("use of the token is written")
	return s.Store.UseTokens(ctx, usedAt)
}

// The request is held before its token is checked, so that the use of the token falls into the shutdown.
func TestRunStopsInOrder(t *testing.T) {
	links, clicks := openStores(t)
	defer testkit.Close(t, clicks)
	secret := addToken(t, links)
	store := &tracedStore{Store: links, entered: make(chan struct{}), release: make(chan struct{})}
	s, err := apiservice.New(config(), store, clicks, nil, discard)
	testkit.Must(t, err)
	stop := run(s)

	answered := make(chan error, 1)
	go func() {
		status, body, err := tryGet(t.Context(), "http://"+s.Addr()+"/api/v1/links", secret)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, body)
		}
		answered <- err
	}()
	<-store.entered
	stopped := make(chan error, 1)
	go func() {
		err := stop()
		store.step("Run returns")
		stopped <- err
	}()
	testkit.Eventually(t, "the listener is closed", func() bool {
		conn, err := net.Dial("tcp", s.Addr())
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	store.step("listener is closed")
	close(store.release)
	testkit.Must(t, <-answered)
	testkit.Must(t, <-stopped)
	testkit.Equal(t, "steps", store.steps, []string{
		"listener is closed", "token is checked", "links are read", "use of the token is written", "Run returns"})
	token, _, err := links.TokenByDigest(t.Context(), auth.Digest(secret))
	testkit.Must(t, err)
	if token.UsedAt.IsZero() {
		t.Error("the use of the token is not stored")
	}
}
