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
	reference, loops := start(f, 0, nil), start(f, 1, nil)
	for _, s := range []*site{reference, loops} {
		close(s.gate)
		close(s.release)
		go func() {
			for conn := range s.hijacked {
				conn.Close()
			}
		}()
		f.Cleanup(func() { close(s.hijacked) })
	}
	f.Fuzz(func(t *testing.T, sent string, cut int) {
		want := reference.talk(t, sent)
		for _, only := range []string{"/hold with", "/work with", "to 127.0.0.1:"} {
			if strings.Contains(want, only) {
				return // what the test's handler answers differently
			}
		}
		for range untilCached {
			if got := loops.talk(t, sent); got != want {
				t.Errorf("to %q loops say\n%q\nwant\n%q", sent, got, want)
			}
		}
		if cut > 0 && cut < len(sent) {
			if got := loops.talk(t, sent[:cut], sent[cut:]); got != want {
				t.Errorf("to %q, cut at %d, loops say\n%q\nwant\n%q", sent, cut, got, want)
			}
		}
	})
}

// FuzzHeaderCache checks that a request whose header fields came before, after any query, means what it means to fasthttp's parser.
func FuzzHeaderCache(f *testing.F) {
	for _, c := range conversations {
		if _, fields, ok := strings.Cut(c.sent, "\n"); ok && len(fields) < 1000 {
			f.Add("", fields)
		}
	}
	f.Add("?a=b&c=://d", "Host: a\r\n\r\n")
	f.Add("?a?b=%20#c?d", "Host: \r\n\r\n")
	f.Add("", "Host: A.Example:80\r\nUser-Agent: a\r\nuser-agent: b\r\nX: y\r\n z\r\nCookie: a=b; c\r\nConnection: keep-alive, x\r\n\r\n")
	f.Add("?", "Host: a\nConnection:close\nConnection: x\n\n")
	reference, loops := start(f, 0, nil), start(f, 1, nil)
	f.Fuzz(func(t *testing.T, query, fields string) {
		for _, path := range []string{"/seen", "/seen-again"} {
			request := "GET " + path + query + " HTTP/1.1\r\n" + fields
			want := reference.talk(t, request)
			for range untilCached {
				if got := loops.talk(t, request); got != want {
					t.Errorf("to %q loops say\n%q\nwant\n%q", request, got, want)
				}
			}
			head := "HEAD" + strings.TrimPrefix(request, "GET")
			if got, want := loops.talk(t, head), reference.talk(t, head); got != want {
				t.Errorf("to %q after them, loops say\n%q\nwant\n%q", head, got, want)
			}
		}
	})
}
