package eventloop_test

import (
	"strings"
	"testing"
)

// FuzzConversation checks that loops say to any bytes, in one or two packets, what goroutines on package net say.
func FuzzConversation(f *testing.F) {
	for _, c := range conversations {
		if len(c.sent) < 1000 {
			f.Add(c.sent, len(c.sent)/2)
		}
	}
	smallBuffers := func(s *site) { s.cfg.MaxHeaderBytes, s.cfg.MaxLargeBytes = 64, 256 }
	sites := map[string][2]*site{
		"": {start(f, 0, nil), start(f, 1, nil)}, "small": {start(f, 0, smallBuffers), start(f, 1, smallBuffers)}}
	for _, s := range sites {
		close(s[0].gate)
		close(s[1].gate)
	}
	f.Fuzz(func(t *testing.T, sent string, cut int) {
		for _, s := range sites {
			compare(t, s[0], s[1], sent, cut)
		}
	})
}

// compare has loops say what the reference says.
func compare(t *testing.T, reference, loops *site, sent string, cut int) {
	want := reference.talk(t, sent)
	for _, only := range []string{"/hold with", "/work with", "to 127.0.0.1:"} {
		if strings.Contains(want, only) {
			return // what the test's handler answers differently
		}
	}
	if got := loops.talk(t, sent); got != want {
		t.Errorf("to %q loops say\n%q\nwant\n%q", sent, got, want)
	}
	if cut > 0 && cut < len(sent) {
		if got := loops.talk(t, sent[:cut], sent[cut:]); got != want {
			t.Errorf("to %q, cut at %d, loops say\n%q\nwant\n%q", sent, cut, got, want)
		}
	}
}
