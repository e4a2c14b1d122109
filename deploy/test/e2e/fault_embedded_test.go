//go:build engines && nightly

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// testEmbeddedFaults is testProgramFaults for a system on embedded engines, whose disk is also that of its engines.
func testEmbeddedFaults(t *testing.T) {
	c := startLoaded(t, &cluster{system: startStandalone(t, segmentSetting)})
	standalone := c.programs[0]
	c.causeEach(t,
		fault{"disk full", func() {
			c.fillSpool(t, standalone)
			c.awaitRise(t, "standalone", counterCounted, 100)
		}},
		fault{"killed while the disk is full", func() {
			standalone.limitFiles(t, 1)
			c.awaitRise(t, "standalone", counterDropped, 1)
			c.stopVisitors(t)
			c.crash(t, standalone)
			standalone.start(t)
		}},
		fault{"clock set", func() {
			for _, ahead := range []time.Duration{40 * 24 * time.Hour, -40 * 24 * time.Hour, 0} {
				standalone.setClock(t, ahead)
				c.awaitRise(t, "standalone", counterCounted, 100)
			}
		}},
		fault{"spool lost when everything is counted", func() {
			c.settle(t)
			standalone.stop(t)
			testkit.Must(t, os.RemoveAll(filepath.Join(c.data, "spool")))
			standalone.start(t)
			c.startVisitors()
			standalone.awaitMetric(t, counterCounted, func(n float64) bool { return n > 300 })
		}},
	)
	days := c.owner().Stats(t, c.links[0])["clicks_by_day"].([]any)
	if len(days) < 3 {
		t.Errorf("the clicks of three days have the dates %v", fmt.Sprint(days))
	}
}
