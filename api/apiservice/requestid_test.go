package apiservice_test

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"linkstream/api/apiservice"
	"linkstream/schema/testkit"
)

func TestRequestIDs(t *testing.T) {
	links, clicks := openStores(t)
	log := new(testkit.Buffer)
	s, err := apiservice.New(config(), links, clicks, nil,
		slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	testkit.Must(t, err)
	stop := run(s)
	token := addToken(t, links)

	for _, c := range []struct {
		path   string
		status int
	}{
		{"/api/v1/links", http.StatusOK},
		{"/api/v1/nothing", http.StatusNotFound},
		{"/dashboard/sign-in", http.StatusOK},
		{"/", http.StatusNotFound},
	} {
		t.Run("in the answer and the log: "+c.path, func(t *testing.T) {
			for _, sent := range []string{"of-the-client" + strings.ReplaceAll(c.path, "/", "-"), ""} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+c.path, nil)
				testkit.Must(t, err)
				req.Header.Set("Authorization", "Bearer "+token)
				req.Header.Set("X-Request-Id", sent)
				res, err := http.DefaultClient.Do(req)
				testkit.Must(t, err)
				res.Body.Close()
				testkit.Equal(t, "status", res.StatusCode, c.status)
				id := res.Header.Get("X-Request-Id")
				if id == "" || sent != "" && id != sent {
					t.Errorf("the answer to %q has the id %q", sent, id)
				}
				testkit.Eventually(t, "the log has the request", func() bool {
					return log.Contains("level=DEBUG msg=request request_id=" + id + " method=GET path=" + c.path)
				})
			}
		})
	}
	t.Run("without secrets in the log, however the path is misspelled", func(t *testing.T) {
		secret := strings.TrimPrefix(token, "ls_")
		for i, path := range []string{"/dashboard/shared/", "/dashboard/Shared/", "/dashboard//shared/", "/share/",
			"/api/v1/", "/api/v1/links/ls_", "/dashboard/shared%2F", "/api/v1/links%3Ftoken=ls_",
			"/api/v1/links?token=ls_"} {
			id := "secret-" + strconv.Itoa(i)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+path+secret, nil)
			testkit.Must(t, err)
			req.Header.Set("Authorization", "Bearer "+token)
			req.Header.Set("X-Request-Id", id)
			res, err := http.DefaultClient.Do(req)
			testkit.Must(t, err)
			res.Body.Close()
			testkit.Eventually(t, "the log has the request", func() bool { return log.Contains("request_id=" + id + " ") })
		}
		if log.Contains(secret[:20]) || log.Contains(secret[20:]) {
			t.Errorf("the log has a secret:\n%s", log)
		}
	})
	t.Run("in the log of a failure", func(t *testing.T) {
		testkit.Must(t, links.Close()) // openStores closes it again, which does no harm
		for _, path := range []string{"/api/v1/links", "/dashboard/links"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+path, nil)
			testkit.Must(t, err)
			req.Header.Set("Authorization", "Bearer "+token+"x")
			req.Header.Set("Cookie", "session="+token)
			req.Header.Set("X-Request-Id", "fails"+strings.ReplaceAll(path, "/", "-"))
			res, err := http.DefaultTransport.RoundTrip(req)
			testkit.Must(t, err)
			res.Body.Close()
			if res.StatusCode >= 500 && !log.Contains(`level=ERROR msg="request failed" request_id=fails`+
				strings.ReplaceAll(path, "/", "-")+" ") {
				t.Errorf("no id in the log of %s:\n%s", path, log)
			}
		}
		if log.Count(`msg="request failed" request_id=fails`) == 0 {
			t.Errorf("nothing failed:\n%s", log)
		}
	})
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	testkit.Must(t, stop())
	testkit.Must(t, clicks.Close())
}
