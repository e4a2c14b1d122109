package verify_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/edge/spool"
	"linkstream/ingest/verify"
	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

func TestWhatAddsUp(t *testing.T) {
	t.Parallel()
	s := newService(t, 2)
	want := func(t *testing.T, want verify.Totals) {
		t.Helper()
		report := s.look()
		testkit.Equal(t, "totals", report.Totals, want)
		testkit.Equal(t, "adds up", report.AddsUp, true)
		testkit.Must(t, report.Err())
	}
	t.Run("nothing", func(t *testing.T) { want(t, verify.Totals{}) })
	t.Run("repeated clicks in the topic", func(t *testing.T) {
		s.produce(0, append(clicks(lane(1), 1, 20), clicks(lane(1), 5, 30)...)...)
		s.produce(1, clicks(lane(2), 1, 10)...)
		want(t, verify.Totals{Lanes: 2, Recorded: 40, Topic: 40})
	})
	t.Run("counted clicks", func(t *testing.T) {
		s.count(40)
		want(t, verify.Totals{Lanes: 2, Recorded: 40, Counted: 40})
	})
	t.Run("a lane that repeats clicks in another partition", func(t *testing.T) {
		s.produce(0, clicks(lane(2), 5, 15)...)
		want(t, verify.Totals{Lanes: 2, Recorded: 45, Counted: 40, Topic: 5})
		s.count(45)
		want(t, verify.Totals{Lanes: 2, Recorded: 45, Counted: 45})
	})
	t.Run("pending and dropped clicks of a spool", func(t *testing.T) {
		s.recorded(schema.SpoolLane{Lane: lane(1), Recorded: 50, Pending: []schema.SeqRange{{First: 25, Last: 50}}},
			schema.SpoolLane{Lane: lane(3), Recorded: 7, Pending: []schema.SeqRange{{First: 1, Last: 7}}})
		s.spools[0].Dropped = 3
		s.recorded(schema.SpoolLane{Lane: lane(1), Recorded: 40, Pending: []schema.SeqRange{{First: 20, Last: 40}}}) // a copy
		want(t, verify.Totals{Lanes: 3, Recorded: 75, Counted: 45, Spool: 27, Dropped: 3})
	})
	t.Run("clicks that are set aside", func(t *testing.T) {
		// A spool sets click 3 of lane 4 aside, and the worker clicks 5 and, at the end, 9. Other dead letters are no clicks.
		late := func(seq uint64) []byte {
			return schema.AppendClick(nil, &schema.Click{Lane: lane(4), Seq: seq, LinkID: 42,
				ClickedAt: noon.AddDate(500, 0, 0)})
		}
		s.recorded(schema.SpoolLane{Lane: lane(4), Recorded: 9, Refused: []schema.SeqRange{{First: 3, Last: 3}}})
		s.produce(1, append(append(append(clicks(lane(4), 1, 2), clicks(lane(4), 4, 4)...), late(5), []byte("noise")),
			append(clicks(lane(4), 6, 8), late(9))...)...)
		want(t, verify.Totals{Lanes: 4, Recorded: 84, Counted: 45, Spool: 27, Topic: 8, SetAside: 1, Dropped: 3})
		s.count(51)
		testkit.Succeeds(t, func() error { // the last record is moved after the last click is counted
			stop := s.startWorker()
			defer stop()
			return testkit.Mismatch("dead letters", s.look().DeadLetters, 3)
		})
		want(t, verify.Totals{Lanes: 4, Recorded: 84, Counted: 51, Spool: 27, SetAside: 3, Dropped: 3})
	})
}

func TestWhatDoesNotAddUp(t *testing.T) {
	t.Parallel()
	gap := func(first, last uint64) verify.Gap { return verify.Gap{First: first, Last: last} }
	only := func(t *testing.T, report *verify.Report) verify.Lane {
		t.Helper()
		if report.AddsUp || report.Err() == nil || report.Failing != 1 {
			t.Fatalf("got %+v", report)
		}
		return report.Lanes[0]
	}
	t.Run("a gap is named", func(t *testing.T) {
		t.Parallel()
		s := newService(t, 1)
		s.produce(0, append(clicks(lane(1), 1, 10), clicks(lane(1), 15, 20)...)...)
		s.produce(0, clicks(lane(2), 1, 5)...)
		got := only(t, s.look()) // no worker has seen it
		testkit.Equal(t, "pending", got, verify.Lane{Lane: lane(1), Recorded: 20, Topic: 16, Missing: 4,
			Gaps: []verify.Gap{gap(11, 14)}}, visibleOnly)
		s.count(21)
		report, err := verify.Run(t.Context(), s.sources())
		testkit.Must(t, err)
		var text bytes.Buffer
		testkit.Must(t, report.WriteText(&text))
		for _, part := range []string{"missing                     4",
			"Missing in lane " + lane(1).String() + ":\n  11 to 14: noticed at offset 10 of partition 0"} {
			if !strings.Contains(text.String(), part) {
				t.Errorf("%q is not in\n%s", part, text.String())
			}
		}
		got = only(t, report)
		if found := got.Gaps[0].Found; time.Since(found) > time.Minute {
			t.Errorf("found at %v", found)
		}
		got.Gaps[0].Found = time.Time{}
		testkit.Equal(t, "counted", got, verify.Lane{Lane: lane(1), Recorded: 20, Counted: 16, Missing: 4,
			Gaps: []verify.Gap{{First: 11, Last: 14, Partition: 0, Offset: 10}}}, visibleOnly)
		testkit.Equal(t, "totals", report.Totals, verify.Totals{Lanes: 2, Recorded: 25, Counted: 21, Missing: 4})
	})
	t.Run("imported clicks, and their tables differ", func(t *testing.T) {
		t.Parallel()
		s := newService(t, 1)
		s.produce(0, clicks(lane(1), 1, 10)...)
		s.count(10)
		testkit.Must(t, s.clicks.SetHistories(t.Context(), storetest.HistoryOf(1, 42, "bitly", noon, 300, 7)))
		report := s.look()
		testkit.Must(t, report.Err())
		testkit.Equal(t, "imported clicks", report.Imported, 307)
		testkit.Equal(t, "counted clicks", report.Totals.Counted, 10)
		var text bytes.Buffer
		testkit.Must(t, report.WriteText(&text))
		want := "imported                  307  clicks that other services have counted"
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
		s.exec("UPDATE imported SET clicks = clicks - 1")
		if report := s.look(); report.AddsUp || len(report.Sums) != 1 || report.Err() == nil {
			t.Errorf("not noticed: %v", report.Sums)
		}
	})
	t.Run("an aggregate that lost clicks", func(t *testing.T) {
		t.Parallel()
		for _, query := range []string{"UPDATE settled_facts SET total = total / 2", "DELETE FROM settled_owned",
			"UPDATE owned_quarters SET people = people - 1",
			"INSERT INTO settled_totals VALUES (1, 1)", "INSERT INTO settled_names VALUES (1, 2, 1, 1, 1, 0)"} {
			t.Run(query, func(t *testing.T) {
				t.Parallel()
				s := newService(t, 1)
				s.produce(0, clicks(lane(1), 1, 10)...)
				s.count(10)
				testkit.Equal(t, "adds up before", s.look().AddsUp, true)
				s.exec(query)
				if report := s.look(); report.AddsUp || len(report.Sums) == 0 || report.Err() == nil {
					t.Errorf("not noticed: %v", report.Sums)
				}
			})
		}
	})
	t.Run("a file of a spool that cannot be read to its end", func(t *testing.T) {
		t.Parallel()
		s := newService(t, 1)
		s.recorded(schema.SpoolLane{Lane: lane(1), Recorded: 2, Pending: []schema.SeqRange{{First: 1, Last: 2}}})
		s.spools[0].Damaged = []string{"a.segment.damaged"}
		report, err := verify.Run(t.Context(), s.sources())
		testkit.Must(t, err)
		testkit.Equal(t, "adds up", report.AddsUp, false)
		if err := report.Err(); err == nil || !strings.Contains(err.Error(),
			"1 files of spools have clicks that cannot be read") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a replaced topic that took clicks with it", func(t *testing.T) {
		t.Parallel()
		s := newService(t, 1)
		s.produce(0, clicks(lane(1), 1, 30)...)
		s.count(30)
		s.produce(0, clicks(lane(1), 31, 50)...)
		s.recorded(schema.SpoolLane{Lane: lane(1), Recorded: 50})
		testkit.Must(t, s.look().Err())
		testkit.Must(t, s.broker.DeleteTopic(stream.DefaultConfig().Clicks))
		report := s.look()
		testkit.Equal(t, "lane", only(t, report), verify.Lane{Lane: lane(1), Recorded: 50, Counted: 30, Missing: 20,
			Gaps: []verify.Gap{gap(31, 50)}}, visibleOnly)
		if notes := strings.Join(report.Notes, " "); !strings.Contains(notes, "of clicks does not exist.") {
			t.Errorf("notes %q", notes)
		}
		s.client = s.broker.CreateTopics(1)
		s.produce(0, clicks(lane(2), 1, 40)...)
		report = s.look()
		testkit.Equal(t, "missing", report.Totals, verify.Totals{Lanes: 2, Recorded: 90, Counted: 30, Topic: 40, Missing: 20})
		testkit.Equal(t, "note", strings.Contains(report.Partitions[0].Note, "the log was replaced"), true)
		s.count(70)
		testkit.Equal(t, "missing later", s.look().Totals, verify.Totals{Lanes: 2, Recorded: 90, Counted: 70, Missing: 20})
	})
	t.Run("retention that was faster than the worker", func(t *testing.T) {
		t.Parallel()
		s := newService(t, 1)
		s.produce(0, clicks(lane(1), 1, 10)...)
		s.count(10)
		s.produce(0, clicks(lane(1), 11, 30)...)
		testkit.Must(t, s.broker.DeleteRecords(stream.DefaultConfig().Clicks, 0, 25))
		testkit.Equal(t, "lane", only(t, s.look()),
			verify.Lane{Lane: lane(1), Recorded: 30, Counted: 10, Topic: 5, Missing: 15,
				Gaps: []verify.Gap{gap(11, 25)}}, visibleOnly)
		s.count(15)
		testkit.Equal(t, "missing later", only(t, s.look()).Missing, 15)
	})
	t.Run("clicks counted twice and a gap without numbers", func(t *testing.T) {
		t.Parallel()
		s := newService(t, 1)
		batch, source := new(schema.ClickBatch), storetest.NewTraffic()
		source.Fill(batch, 0, 10)
		for i := range batch.Lane {
			batch.Lane[i], batch.Seq[i] = lane(1), uint64(1+i/2)
		}
		batch.Lane[8], batch.Lane[9] = lane(2), lane(2)
		testkit.Must(t, s.store.InsertClicks(t.Context(), batch))
		report := s.look()
		testkit.Equal(t, "lanes", report.Lanes, []verify.Lane{
			{Lane: lane(1), Recorded: 4, Counted: 4, Repeated: 4},
			{Lane: lane(2), Recorded: 5, Counted: 2, Missing: 3, Unnamed: 3},
		}, visibleOnly)
		if err := report.Err(); err == nil || !strings.Contains(err.Error(),
			"3 clicks are missing and 4 are counted more than once, in 2 lanes") {
			t.Errorf("error %v", err)
		}
	})
}

// A click that is lost for one look and there in the next one was on its way.
func TestSecondLook(t *testing.T) {
	t.Parallel()
	s := newService(t, 1)
	s.produce(0, clicks(lane(1), 1, 10)...)
	s.recorded(schema.SpoolLane{Lane: lane(1), Recorded: 20})
	s.recorded(schema.SpoolLane{Lane: lane(2), Recorded: 5})
	looks, sources := 0, s.sources()
	spools := sources.Spools
	sources.Spools = func() ([]schema.SpoolReport, error) {
		if looks++; looks == 2 {
			s.produce(0, clicks(lane(1), 11, 20)...)
			s.recorded(schema.SpoolLane{Lane: lane(3), Recorded: 7})
		}
		return spools()
	}
	report, err := verify.Run(t.Context(), sources)
	testkit.Must(t, err)
	testkit.Equal(t, "totals", report.Totals, verify.Totals{Lanes: 3, Recorded: 32, Topic: 27, Missing: 5})
	testkit.Equal(t, "lane", report.Lanes[0].Lane, lane(2))
}

// Clicks are recorded, sent and counted all the time. No look, from the spool to the store, must miss one.
func TestLooksWhileClicksAreOnTheirWay(t *testing.T) {
	t.Parallel()
	s, log := newService(t, 2), slog.New(slog.DiscardHandler)
	cfg := spool.DefaultConfig()
	cfg.Dir, cfg.Lanes, cfg.SegmentBytes = t.TempDir(), 2, 16<<10
	clicks, err := spool.Open(cfg, log)
	testkit.Must(t, err)
	shipper := spool.NewShipper(clicks, s.client, log)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { shipper.Run(ctx) })
	running.Go(func() {
		for n := uint64(0); ctx.Err() == nil; n++ {
			clicks.Append(n, &schema.Click{LinkID: 42, ClickedAt: noon})
			if n%50 == 0 {
				stream.Sleep(ctx, time.Millisecond)
			}
		}
	})
	stopWorker := s.startWorker()
	sources, spoolsRead := s.sources(), 0
	sources.Spools = func() ([]schema.SpoolReport, error) {
		spoolsRead++
		report, err := spool.Inspect(cfg.Dir)
		return []schema.SpoolReport{report}, err
	}
	counted := uint64(0)
	for begin, looks := time.Now(), 0; counted < 5_000 || looks < 20; looks++ {
		spoolsRead = 0
		report, err := verify.Run(t.Context(), sources)
		testkit.Must(t, err)
		if !report.AddsUp || spoolsRead > 1 { // a second look reads them again
			var text bytes.Buffer
			testkit.Must(t, report.WriteText(&text))
			t.Fatalf("look %d does not add up:\n%s", looks, text.String())
		}
		counted = report.Totals.Counted
		if time.Since(begin) > 2*testkit.Patience {
			t.Fatalf("%d clicks counted", counted)
		}
	}
	cancel()
	running.Wait()
	testkit.Must(t, clicks.Close())
	testkit.Succeeds(t, func() error {
		report, err := verify.Run(t.Context(), sources)
		return errors.Join(err, report.Err(), testkit.Mismatch("counted", report.Totals.Counted, report.Totals.Recorded))
	})
	stopWorker()
}
