package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

func TestSharedReports(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testSharedReports, "LINKSTREAM_API_TRUSTED_PROXIES=127.0.0.0/8")
}

// testSharedReports reads shared reports, where there are several apis by another one than the one that makes and revokes them.
func testSharedReports(t *testing.T, s *system) {
	owner, reader := s.owner(), s.api
	if s.programs[0].name == "api" {
		_, reader = s.startAnother(t, "api")
	}
	reads := 0
	read := func(path string) answer { // from another address each time: each has its pace
		reads++
		return call(t, http.MethodGet, reader+path, "", "X-Forwarded-For", fmt.Sprintf("192.168.%d.%d", reads>>8, reads&255))
	}
	share := func(body string) (name, path string) {
		name, address := owner.Share(t, body)
		parsed, err := url.Parse(address)
		testkit.Must(t, err)
		return name, parsed.Path
	}
	shows := func(page answer, text string) error {
		if page.Status != http.StatusOK || !strings.Contains(page.Raw, text) {
			return fmt.Errorf("no %q in %v", text, page)
		}
		return nil
	}
	owner.Alias(t, "shared", "https://example.com/target")
	for range 3 {
		s.click(t, "shared", "User-Agent", desktop)
	}
	owner.WaitTotal(t, "shared", 3)

	t.Run("are read by anyone, and follow the clicks", func(t *testing.T) {
		_, path := share(`{"hash":"shared"}`)
		_, hidden := share(`{"hide_targets":true}`)
		testkit.Must(t, shows(read(path), "example.com/target"))
		testkit.Must(t, shows(read(path), `<dd>3</dd>`))
		if page := read(hidden); shows(page, "Top links") != nil || strings.Contains(page.Raw, "example.com") {
			t.Errorf("%v", page)
		}
		s.click(t, "shared", "User-Agent", desktop)
		testkit.SucceedsWithin(t, time.Minute, func() error { return shows(read(path), `<dd>4</dd>`) })
	})
	t.Run("are not found within a second after they were revoked, or have ended", func(t *testing.T) {
		testkit.Follows(t, time.Second, func(int) func() error {
			name, path := share(`{"hash":"shared"}`)
			testkit.Must(t, shows(read(path), "shared"))
			owner.Call(t, http.MethodDelete, name, "").Want(t, http.StatusOK)
			return func() error { return read(path).IsStatus(http.StatusNotFound) }
		})
		end := time.Now().Add(3 * time.Second)
		_, path := share(`{"expires_at":"` + end.Format(time.RFC3339) + `"}`)
		testkit.SucceedsWithin(t, 10*time.Second, func() error { return read(path).IsStatus(http.StatusNotFound) })
		if time.Now().Before(end.Truncate(time.Second)) {
			t.Error("the report has ended early")
		}
	})
	t.Run("ask for a password, which every api accepts", func(t *testing.T) {
		_, path := share(`{"hash":"shared","password":"open sesame"}`)
		testkit.Must(t, shows(read(path), "has a password"))
		enter := func(password string) answer {
			return call(t, http.MethodPost, reader+path, url.Values{"password": {password}}.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin", "null")
		}
		testkit.Must(t, enter("open").IsStatus(http.StatusUnprocessableEntity))
		right := enter("open sesame")
		testkit.Must(t, right.IsStatus(http.StatusSeeOther))
		cookie, _, _ := strings.Cut(right.Header.Get("Set-Cookie"), ";")
		for _, api := range []string{reader, s.api} {
			testkit.Must(t, shows(call(t, http.MethodGet, api+path, "", "Cookie", cookie), "example.com/target"))
		}
	})
	t.Run("cost their owner nothing, however many read them", func(t *testing.T) {
		_, path := share(`{}`)
		own := caller{API: reader, Token: s.token}
		floodReaders(t, func(i int) { _ = tryRead(reader+path, i) }, func() {
			for range 5 {
				testkit.Takes(t, 5*time.Second, func(int) {
					own.Get(t, "/api/v1/report").Want(t, http.StatusOK)
					own.Get(t, "/api/v1/stats/shared").Want(t, http.StatusOK)
				})
			}
		})
		testkit.SucceedsWithin(t, time.Minute, func() error { return shows(read(path), "Clicks on") })
	})
}

// floodReaders calls read from many goroutines until during has returned.
func floodReaders(t *testing.T, read func(i int), during func()) {
	t.Helper()
	stop := make(chan struct{})
	var flood sync.WaitGroup
	for worker := range 32 {
		flood.Go(func() {
			for i := worker; ; i += 32 {
				select {
				case <-stop:
					return
				default:
					read(i)
				}
			}
		})
	}
	during()
	close(stop)
	flood.Wait()
}

var floodClient = &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}

// tryRead reads a report as one of many networks: the report itself, or one with a filter that nobody else asks for.
func tryRead(address string, i int) error {
	if i%2 == 0 {
		address += fmt.Sprint("?browser=", i)
	}
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255))
	res, err := floodClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if !slices.Contains([]int{http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable}, res.StatusCode) {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}
