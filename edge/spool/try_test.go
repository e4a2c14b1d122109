package spool_test

import (
	"runtime"
	"testing"
	"testing/synctest"

	"linkstream/schema/testkit"
)

func TestInstantAppend(t *testing.T) {
	t.Run("appends as Append does", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, _ := open(t, config(t.TempDir(), 1))
			for link := int64(1); link <= 50; link += 2 {
				synctest.Wait() // for goroutines that create segments, and hold the lane
				testkit.Equal(t, "appended", s.Instant().Append(0, click(link)), true)
				appendClicks(t, s, 0, link+1, link+1)
			}
			lane := s.Lanes()[0]
			isRun(t, read(t, lane), lane.ID(), 1, 1, 50)
		})
	})
	t.Run("leaves the creation of segments to others", func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // they do not get to run while this goroutine appends
		s, _ := open(t, config(t.TempDir(), 1))
		link := int64(0)
		for s.Instant().Append(0, click(link+1)) {
			link++
			if link == 1000 { // there is a segment and a spare, for about 240
				t.Fatal("1000 clicks found room")
			}
		}
		testkit.Equal(t, "dropped", s.Dropped(), 0)
		testkit.Eventually(t, "there is a spare", func() bool { return s.Instant().Append(0, click(link+1)) })
		lane := s.Lanes()[0]
		isRun(t, read(t, lane), lane.ID(), 1, 1, link+1)
	})
	t.Run("takes another lane than one that is in use", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, _ := open(t, config(t.TempDir(), 2))
			synctest.Wait() // for goroutines that create segments, and hold a lane
			release := s.Lanes()[0].Hold()
			testkit.Equal(t, "appended", s.Instant().Append(0, click(1)), true)
			releaseOther := s.Lanes()[1].Hold()
			testkit.Equal(t, "appended", s.Instant().Append(0, click(2)), false)
			release()
			testkit.Equal(t, "appended", s.Instant().Append(0, click(3)), true)
			releaseOther()
			isRun(t, read(t, s.Lanes()[0]), s.Lanes()[0].ID(), 1, 3, 3)
			isRun(t, read(t, s.Lanes()[1]), s.Lanes()[1].ID(), 1, 1, 1)
			testkit.Equal(t, "dropped", s.Dropped(), 0)
		})
	})
	t.Run("leaves it to Append to drop clicks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, _, _ := full(t, t.TempDir())
			dropped := s.Dropped()
			testkit.Equal(t, "appended", s.Instant().Append(0, click(1)), false)
			testkit.Equal(t, "dropped", s.Dropped(), dropped)
		})
	})
}
