package request_test

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/api/request"
)

func TestRecorder(t *testing.T) {
	set := metrics.NewSet()
	recorder := request.NewRecorder(set)
	began := time.Now().Add(-time.Second)
	var observing sync.WaitGroup
	for range 100 {
		observing.Go(func() {
			recorder.Observe("/a/{b}", 200, began)
			recorder.Observe("/a/{b}", 404, began)
			recorder.Observe(request.OtherRoute, 404, began)
		})
	}
	observing.Wait()
	var text bytes.Buffer
	set.WritePrometheus(&text)
	for _, line := range []string{
		`linkstream_api_requests_total{route="/a/{b}",status="200"} 100`,
		`linkstream_api_requests_total{route="/a/{b}",status="404"} 100`,
		`linkstream_api_requests_total{route="other",status="404"} 100`,
		`linkstream_api_request_seconds_count{route="/a/{b}"} 200`,
		`linkstream_api_request_seconds_count{route="other"} 100`,
	} {
		if !strings.Contains(text.String(), line+"\n") {
			t.Errorf("no line %s in:\n%s", line, &text)
		}
	}
	// 200 requests of one second, give or take the duration of this test.
	if !regexp.MustCompile(`linkstream_api_request_seconds_sum{route="/a/{b}"} 2\d\d`).MatchString(text.String()) {
		t.Errorf("the sum of durations is not about 200 s:\n%s", &text)
	}
}

func BenchmarkObserve(b *testing.B) {
	recorder := request.NewRecorder(metrics.NewSet())
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			recorder.Observe("/a/{b}", 200, time.Time{})
		}
	})
}
