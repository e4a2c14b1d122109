package live_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"linkstream/api/live"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// stores are both stores, in which nothing takes time.
type stores struct {
	mu      sync.Mutex
	clicks  map[int64]schema.Period // by link
	links   []int64                 // the links of account 1 with the tag
	revoked map[int64]bool
	fails   error
	asked   queries
}

// queries counts calls of ClickTotals, of ValidTokens, and of LinkIDs and LinksByID.
type queries struct{ counts, checks, selected int }

// queries returns the calls since it was called before.
func (s *stores) queries() (asked queries) {
	synctest.Wait()
	s.change(func() { asked, s.asked = s.asked, queries{} })
	return asked
}

func (s *stores) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *stores) ClickTotals(_ context.Context, links, accounts []int64) (ofLinks, ofAccounts map[int64]schema.Period,
	err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked.counts++
	ofLinks, ofAccounts = map[int64]schema.Period{}, map[int64]schema.Period{}
	for _, id := range links {
		ofLinks[id] = s.clicks[id]
	}
	var all schema.Period
	for clicks := range maps.Values(s.clicks) {
		all.Add(clicks)
	}
	for _, id := range accounts {
		ofAccounts[id] = all
	}
	return ofLinks, ofAccounts, s.fails
}

func (s *stores) LinkIDs(context.Context, int64, schema.LinkFilter, int) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked.selected++
	return slices.Clone(s.links), nil
}

func (s *stores) LinksByID(_ context.Context, _ int64, ids []int64) (links []schema.Link, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked.selected++
	for _, id := range ids {
		links = append(links, schema.Link{ID: id})
	}
	return links, nil
}

func (s *stores) ValidTokens(_ context.Context, ids []int64) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked.checks++
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return s.revoked[id] }), nil
}

func (s *stores) ValidSessions(context.Context, []int64, time.Time) ([]int64, error) { return nil, nil }

// service serves streams of a link at /LINK/ACCOUNT/TOKEN, and of a tag at /tag/ACCOUNT/TOKEN.
type service struct {
	*stores
	listener *fasthttputil.InmemoryListener
	stop     func()
}

func inBubble(t *testing.T, name string, test func(t *testing.T, s *service)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &service{stores: &stores{clicks: map[int64]schema.Period{}, revoked: map[int64]bool{}},
				listener: fasthttputil.NewInmemoryListener()}
			until := func(context.Context) (time.Time, bool) { return time.Now(), true }
			hub := live.NewHub(s, s, until, 5000, metrics.NewSet(), slog.New(slog.DiscardHandler))
			server := &fasthttp.Server{Handler: func(http *fasthttp.RequestCtx) { answer(http, hub) }, WriteTimeout: time.Second}
			var running sync.WaitGroup
			running.Go(func() { testkit.Must(t, server.Serve(s.listener)) })
			ctx, cancel := context.WithCancel(context.Background())
			stopped := make(chan struct{})
			go func() { defer close(stopped); hub.Run(ctx) }()
			s.stop = func() { cancel(); <-stopped }
			defer func() {
				s.stop()
				testkit.Must(t, server.Shutdown())
				running.Wait()
				time.Sleep(time.Minute) // until fasthttp's cleaner of idle workers has ended
			}()
			test(t, s)
		})
	})
}

func answer(http *fasthttp.RequestCtx, hub *live.Hub) {
	var of string
	topic, holder := live.Topic{}, live.Holder{}
	_, _ = fmt.Sscanf(strings.ReplaceAll(string(http.Path())[1:], "/", " "), "%s %d %d", &of, &topic.Account,
		&holder.Token)
	links := []int64{}
	if topic.Tag = of; of != "tag" {
		topic.Tag = ""
		_, _ = fmt.Sscan(of, &topic.Link)
		links = append(links, topic.Link)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stream, err := hub.Open(ctx, topic, links, holder)
	if err != nil {
		http.Error(err.Error(), fasthttp.StatusTooManyRequests)
		return
	}
	stream.Serve(http, func(dst []byte, counts live.Counts) ([]byte, string) {
		return fmt.Appendf(dst, "%d %d", counts.People, counts.Bots), counts.Until.UTC().Format(time.RFC3339)
	})
}

// client is an open stream.
type client struct {
	net.Conn
	lines  chan string
	status int
}

func (s *service) open(t *testing.T, path string) *client {
	t.Helper()
	conn, err := s.listener.Dial()
	testkit.Must(t, err)
	c := &client{Conn: conn, lines: make(chan string, 1000)}
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
	testkit.Must(t, err)
	reader := bufio.NewReader(conn)
	res, err := http.ReadResponse(reader, nil)
	testkit.Must(t, err)
	c.status = res.StatusCode
	go func() {
		defer close(c.lines)
		for body := bufio.NewScanner(res.Body); body.Scan(); {
			if body.Text() != "" {
				c.lines <- body.Text()
			}
		}
	}()
	t.Cleanup(func() { conn.Close() })
	return c
}

// received returns the bytes that the client has received so far.
func (c *client) received() (lines []string) {
	synctest.Wait()
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return append(lines, "END")
			}
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

func eventAt(at time.Time, people, bots int) []string {
	return []string{"event: counts", "id: " + at.UTC().Format(time.RFC3339), fmt.Sprintf("data: %d %d", people, bots)}
}

func TestHub(t *testing.T) {
	(&fasthttp.ResponseHeader{}).Header() // begins to keep the date, outside of the bubbles
	inBubble(t, "many streams cost one query per second, and none before they come and after they have left",
		func(t *testing.T, s *service) {
			time.Sleep(time.Hour)
			testkit.Equal(t, "queries without streams", s.queries() == (queries{}), true)
			var clients []*client
			for i := range 1000 {
				clients = append(clients, s.open(t, fmt.Sprintf("/%d/%d/%[2]d", i%50+1, i/10+1)))
			}
			s.queries()
			time.Sleep(90 * time.Second)
			if q := s.queries(); q.counts != 100 || q.checks > 181 || q.selected > 18*100 {
				t.Errorf("%+v in 90 s", q)
			}
			for _, c := range clients {
				c.Close()
			}
			time.Sleep(time.Second)
			s.queries()
			time.Sleep(time.Hour)
			testkit.Equal(t, "queries after the streams", s.queries() == (queries{}), true)
		})
	inBubble(t, "a change is told within a second, and nothing else but a comment every 15 seconds",
		func(t *testing.T, s *service) {
			began := time.Now()
			c := s.open(t, "/7/1/1")
			testkit.Equal(t, "first", c.received(), eventAt(began, 0, 0))
			time.Sleep(100 * time.Millisecond)
			for n := range 20 {
				s.change(func() { s.clicks[7] = schema.Period{People: int64(n + 1), Bots: int64(n)} })
				time.Sleep(time.Second)
				if said := slices.DeleteFunc(c.received(), func(line string) bool { return line == ":" }); len(said) != 3 ||
					said[2] != fmt.Sprintf("data: %d %d", n+1, n) {
					t.Errorf("after change %d: %q", n, said)
				}
			}
			time.Sleep(time.Minute)
			testkit.Equal(t, "quiet minute", c.received(), []string{":", ":", ":", ":"})
		})
	inBubble(t, "a stream outlives the write timeout of the server", func(t *testing.T, s *service) {
		c := s.open(t, "/7/1/1")
		time.Sleep(time.Hour)
		s.change(func() { s.clicks[7] = schema.Period{People: 1} })
		time.Sleep(time.Second)
		said := c.received()
		testkit.Equal(t, "last", said[len(said)-1], "data: 1 0")
	})
	inBubble(t, "links that get the tag count within two seconds of a click", func(t *testing.T, s *service) {
		c := s.open(t, "/tag/1/1")
		time.Sleep(time.Second)
		c.received()
		s.change(func() {
			s.links, s.clicks[8], s.clicks[9] = []int64{8}, schema.Period{People: 3}, schema.Period{Bots: 5}
		})
		time.Sleep(2 * time.Second)
		testkit.Equal(t, "counts", c.received()[2], "data: 3 0")
	})
	inBubble(t, "an account has ten streams at most", func(t *testing.T, s *service) {
		var clients []*client
		for range live.MaxStreams {
			clients = append(clients, s.open(t, "/7/1/1"))
		}
		testkit.Equal(t, "status of one more", s.open(t, "/8/1/2").status, 429)
		testkit.Equal(t, "status of another account", s.open(t, "/7/2/2").status, 200)
		clients[0].Close()
		synctest.Wait()
		testkit.Equal(t, "status after one has left", s.open(t, "/8/1/2").status, 200)
	})
	inBubble(t, "a revoked token ends its streams within a second, and no others", func(t *testing.T, s *service) {
		revoked, other := s.open(t, "/7/1/1"), s.open(t, "/7/1/2")
		time.Sleep(10 * time.Second)
		revoked.received()
		s.change(func() { s.revoked[1] = true })
		time.Sleep(time.Second)
		testkit.Equal(t, "revoked", revoked.received(), []string{"END"})
		s.change(func() { s.clicks[7] = schema.Period{People: 1} })
		time.Sleep(time.Second)
		testkit.Equal(t, "other", other.received()[5], "data: 1 0")
	})
	inBubble(t, "a client that does not read is dropped, and others are served meanwhile", func(t *testing.T, s *service) {
		slow, err := s.listener.Dial()
		testkit.Must(t, err)
		_, err = fmt.Fprint(slow, "GET /7/1/1 HTTP/1.1\r\nHost: a\r\n\r\n")
		testkit.Must(t, err)
		quick := s.open(t, "/7/1/2")
		for n := range 2000 {
			s.change(func() { s.clicks[7] = schema.Period{People: int64(n + 1)} })
			time.Sleep(time.Second)
			if said := quick.received(); said[len(said)-1] != fmt.Sprintf("data: %d 0", n+1) && said[len(said)-1] != ":" {
				t.Fatalf("after change %d: %q", n, said)
			}
		}
		for range live.MaxStreams - 1 {
			testkit.Equal(t, "status", s.open(t, "/7/1/1").status, 200)
		}
	})
	inBubble(t, "an outage fails new streams, and old ones go on after it", func(t *testing.T, s *service) {
		c := s.open(t, "/7/1/1")
		s.change(func() { s.fails = schema.Errorf(schema.CodeUnavailable, "away") })
		testkit.Equal(t, "status", s.open(t, "/8/1/1").status, 429) // answer says so of all errors
		time.Sleep(time.Minute)
		s.change(func() { s.fails, s.clicks[7] = nil, schema.Period{People: 1} })
		time.Sleep(6 * time.Second)
		said := c.received()
		testkit.Equal(t, "last", said[len(said)-1], "data: 1 0")
	})
	inBubble(t, "streams end at once when the service stops, and no others begin", func(t *testing.T, s *service) {
		c := s.open(t, "/7/1/1")
		c.received()
		began := time.Now()
		s.stop()
		testkit.Equal(t, "time", time.Since(began), 0)
		testkit.Equal(t, "end", c.received(), []string{"END"})
		testkit.Equal(t, "status", s.open(t, "/7/1/1").status, 429)
	})
}
