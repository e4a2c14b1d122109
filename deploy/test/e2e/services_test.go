//go:build engines

package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// startServices starts all services of a system at the same time, on empty databases. Its long caches show that edges
// follow changes.
func startServices(t *testing.T) *system {
	t.Helper()
	s := newServices(t, emptyEngines(t), longCaches)
	s.start(t)
	return s
}

func TestSeveralProgramsOfEachServiceAreOneSystem(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	otherEdge, edge := s.startAnother(t, "edge")
	_, api := s.startAnother(t, "api")
	otherIngest, _ := s.startAnother(t, "ingest")
	here, there := s.owner(), caller{API: api, Token: s.token}
	here.Alias(t, "shared", "https://example.com/")
	edges := []string{s.edge, edge}

	visit := func(base, hash string) answer {
		return call(t, http.MethodGet, base+"/"+hash, "", "Host", address(s.edge))
	}
	answers := func(hash string, status int) error {
		var errs []error
		for _, base := range edges {
			errs = append(errs, visit(base, hash).IsStatus(status))
		}
		return errors.Join(errs...)
	}
	t.Run("a link is listed by every api and works on every edge", func(t *testing.T) {
		if items, _ := there.Page(t, ""); len(items) != 1 || items[0]["hash"] != "shared" {
			t.Errorf("the other api lists %v", items)
		}
		testkit.Must(t, answers("shared", http.StatusFound))
	})
	t.Run("every api reports the sum of the clicks of all edges", func(t *testing.T) {
		const more = 50
		for range more {
			for _, base := range edges {
				visit(base, "shared")
			}
		}
		for _, c := range []caller{here, there} {
			c.WaitTotal(t, "shared", 2+2*more)
		}
	})
	t.Run("a link that was unknown works on every edge within a second of its creation", func(t *testing.T) {
		testkit.Follows(t, time.Second, func(try int) func() error {
			hash := fmt.Sprint("sooner-", try)
			for _, base := range edges {
				wantPage(t, visit(base, hash), http.StatusNotFound)
			}
			there.Alias(t, hash, "https://example.com/")
			return func() error { return answers(hash, http.StatusFound) }
		})
	})
	t.Run("clicks of an edge that stops are counted, even if an ingest stops, too", func(t *testing.T) {
		there.Alias(t, "last", "https://example.com/")
		for range 20 {
			call(t, http.MethodGet, edge+"/last", "", "Host", address(s.edge))
		}
		otherEdge.stop(t)
		otherIngest.stop(t)
		here.WaitTotal(t, "last", 20)
	})
	t.Run("a revoked token is refused by every api", func(t *testing.T) {
		testkit.Follows(t, 2*time.Second, func(int) func() error {
			token := s.admin(t, "token", "add", s.email)
			here, there := caller{API: s.api, Token: token}, caller{API: api, Token: token}
			here.Page(t, "")
			there.Page(t, "")
			s.admin(t, "token", "revoke", token)
			return func() error {
				return errors.Join(here.Get(t, "/api/v1/links").IsStatus(http.StatusUnauthorized),
					there.Get(t, "/api/v1/links").IsStatus(http.StatusUnauthorized))
			}
		})
	})
}

func TestServicesStartInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"edge", "ingest", "api"}, {"ingest", "api", "edge"}} {
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			s := newServices(t, emptyEngines(t))
			for _, service := range order {
				s.program(service).start(t)
			}
			s.owner().Alias(t, "known", "https://example.com/")
			s.click(t, "known")
			s.owner().WaitTotal(t, "known", 1)
		})
	}
}

// TestChangesReachEdgesWithoutBroker has an api that cannot publish, and that does not come back after its answer.
func TestChangesReachEdgesWithoutBroker(t *testing.T) {
	t.Parallel()
	s := newServices(t, sharedEngines(t), longCaches)
	s.start(t)
	api, edge := s.program("api"), s.program("edge")
	api.kill(t)
	for i, v := range api.env {
		if strings.HasPrefix(v, "LINKSTREAM_KAFKA_BROKERS=") {
			api.env[i] = "LINKSTREAM_KAFKA_BROKERS=" + testkit.FreeAddress(t)
		}
	}
	for n := range 4 {
		api.start(t)
		change := s.cached(t, n)
		s.change(t, n)
		api.kill(t)
		if n%2 == 1 {
			edge.kill(t)
			edge.start(t)
		}
		change.awaitSeen(t, s)
	}
}

// partitions is the number of partitions of the topic of clicks.
const partitions = 4

// segmentSetting makes the spool and so its files small: lanes often need a new one.
const segmentSetting = "LINKSTREAM_SPOOL_MAX_BYTES=8388608"

// sessionSetting lets a consumer group remove a dead member as soon as brokers allow.
const sessionSetting = "LINKSTREAM_KAFKA_SESSION_TIMEOUT=6s"

func TestIngestWorkersStandBy(t *testing.T) {
	t.Parallel()
	s := newServices(t, sharedEngines(t), "LINKSTREAM_KAFKA_PARTITIONS=1")
	second := s.add(t, "ingest", "http://"+testkit.FreeAddress(t))
	s.start(t) // requires that both are ready
	first := s.program("ingest")
	testkit.Succeeds(t, func() error {
		if a, b := first.metric(t, gaugePartitions), second.metric(t, gaugePartitions); a+b != 1 {
			return fmt.Errorf("two workers have %v and %v partitions", a, b)
		}
		return nil
	})
	idle, busy := first, second
	if first.metric(t, gaugePartitions) == 1 {
		idle, busy = second, first
	}
	idle.awaitReady(t)
	busy.stop(t)
	awaitPartitions(t, idle, 1)
	s.owner().Alias(t, "known", "https://example.com/")
	s.click(t, "known")
	s.owner().WaitTotal(t, "known", 1)
}

func awaitPartitions(t *testing.T, worker *program, want float64) {
	t.Helper()
	worker.awaitMetric(t, gaugePartitions, func(n float64) bool { return n == want })
}

// stop ends the program by SIGTERM, see end.
func (p *program) stop(t *testing.T) {
	t.Helper()
	p.end(t, syscall.SIGTERM)
}

// metric returns the value of a metric, which the service must have.
func (p *program) metric(t *testing.T, name string) float64 {
	t.Helper()
	value, err := p.tryMetric(name)
	testkit.Must(t, err)
	return value
}

// awaitRise waits until the sum of a metric of all programs of a service is greater than it is now, at least by this
// much. None of them may end. They may still be starting.
func (s *system) awaitRise(t *testing.T, service, name string, by float64) {
	t.Helper()
	sum := func() (sum float64, err error) {
		for _, p := range s.all(service) {
			value, failed := p.tryMetric(name)
			sum, err = sum+value, errors.Join(err, failed)
		}
		return sum, err
	}
	var before float64
	testkit.Succeeds(t, func() (err error) { before, err = sum(); return err })
	testkit.SucceedsWithin(t, 2*testkit.Patience, func() error {
		now, err := sum()
		if err == nil && now < before+by {
			err = fmt.Errorf("%s of %s was %v and is %v", name, service, before, now)
		}
		return err
	})
}
