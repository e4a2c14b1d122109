package live

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
)

const (
	commentEvery = 15 * time.Second
	// writeTimeout bounds the time in which a client takes what is written to it.
	writeTimeout = 10 * time.Second
)

// Stream sends the counts of a topic to a client. It belongs to one goroutine.
type Stream struct {
	hub     *Hub
	topic   *topic
	holder  Holder
	changed chan struct{} // has an element if the counts have changed
	ended   chan struct{} // closed when the stream is over
	close   sync.Once
}

// Close ends the stream. It may be called more than once.
func (s *Stream) Close() {
	s.close.Do(func() {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		s.hub.leave(s)
		s.hub.writers.Done()
	})
}

// Counts returns the counts of the topic.
func (s *Stream) Counts() Counts {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.topic.counts
}

// Serve answers a request with the stream, which takes over the connection: a response of the server has one deadline
// as a whole. data appends the data of an event to dst, in one line, and returns its ID, "" for none. It must not use
// the request.
func (s *Stream) Serve(http *fasthttp.RequestCtx, data func(dst []byte, counts Counts) ([]byte, string)) {
	SetHeaders(http)
	http.SetConnectionClose()
	request.AnswerID(http)
	header := &http.Response.Header
	header.SetContentLength(-2) // the body ends with the connection
	head := append([]byte(nil), header.Header()...)
	// the server does not call a hijacker if the connection is closed already
	late := time.AfterFunc(writeTimeout, s.Close)
	owned := http.Conn() // whose Close is not left to the server
	http.HijackSetNoResponse(true)
	http.Hijack(func(conn net.Conn) {
		defer s.Close()
		if !late.Stop() {
			return
		}
		left := make(chan struct{})
		go func() {
			defer close(left)
			// returns when the client closes the connection, for it has nothing to send
			_, _ = io.ReadFull(conn, make([]byte, 1))
		}()
		s.write(conn, head, left, data)
		owned.Close()
		<-left // the server takes its reader back
	})
}

// SetHeaders sets the headers of an answer that is a stream.
func SetHeaders(http *fasthttp.RequestCtx) {
	http.SetStatusCode(fasthttp.StatusOK)
	http.SetContentType("text/event-stream")
	http.Response.Header.Set("X-Accel-Buffering", "no") // makes nginx pass events on at once
}

// write writes the counts, each change of them, and comments. It returns when the stream is over, or when the client
// has left or stops reading.
func (s *Stream) write(conn net.Conn, said []byte, left <-chan struct{}, data func([]byte, Counts) ([]byte, string)) {
	comments := time.NewTicker(commentEvery)
	defer comments.Stop()
	said = appendEvent(said, s.Counts(), data)
	for {
		if conn.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
			return
		}
		if _, err := conn.Write(said); err != nil {
			return
		}
		said = said[:0]
		select {
		case <-s.ended:
			return
		case <-left:
			return
		case <-comments.C:
			said = append(said, ":\n\n"...)
		case <-s.changed:
			said = appendEvent(said, s.Counts(), data)
		}
	}
}

func appendEvent(dst []byte, counts Counts, data func([]byte, Counts) ([]byte, string)) []byte {
	line, id := data(nil, counts)
	dst = append(dst, "event: counts\n"...)
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	return append(append(append(dst, "data: "...), line...), "\n\n"...)
}
