//go:build engines

package clickhouse_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/deploy/tools/engines/enginetest"
)

var engines enginetest.Engines

func TestMain(m *testing.M) {
	if wait := untilCalm(time.Now().UTC()); wait > 0 {
		fmt.Println("waiting for", wait, "because a month begins")
		time.Sleep(wait)
	}
	goleak.VerifyTestMain(engines.Of(m))
}

// untilCalm returns how long the tests have to wait where a month begins: late clicks are refused in its first minutes,
// see InsertMonth, and tests name the month of now.
func untilCalm(now time.Time) time.Duration {
	const refused, enough = 6 * time.Minute, 15 * time.Minute
	near := now.Add(enough) // in the new month, if that begins before the tests end
	begins := time.Date(near.Year(), near.Month(), 1, 0, 0, 0, 0, time.UTC)
	return begins.Add(refused).Sub(now)
}

func TestUntilCalm(t *testing.T) {
	for now, want := range map[string]bool{"2026-11-30T23:44:59Z": false, "2026-11-30T23:45:00Z": true,
		"2026-12-01T00:05:59Z": true,
		"2026-12-01T00:06:00Z": false, "2026-12-31T23:59:59Z": true, "2028-02-29T23:44:00Z": false} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		wait := untilCalm(at)
		if (wait > 0) != want || want && untilCalm(at.Add(wait)) > 0 {
			t.Errorf("%s: wait for %v", now, wait)
		}
	}
}
