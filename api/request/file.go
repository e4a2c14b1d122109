package request

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
	"linkstream/schema/turns"
)

// Limits of files that are sent, or received, at the pace of their clients.
const (
	maxFiles     = 64               // that are sent at a time, one of each account; each has a page of links in memory
	MaxFileTime  = 30 * time.Minute // for a file
	filePatience = time.Minute      // that a client may take for a file, in addition to the time at fileSpeed
	fileSpeed    = 16 << 10         // bytes per second
)

// Errors of Files.Send.
var (
	ErrFileOfClient = errors.New("another file is being sent to the client")
	ErrFiles        = errors.New("many files are being sent")
)

// filePace ends the transfer of a file whose client is slower than fileSpeed over the whole file. Time in which the
// client waits for the service does not count.
type filePace struct {
	deadline func(time.Time) error // sets the deadline of the connection
	moved    int                   // bytes
	waited   time.Duration         // for the client
}

// move calls transfer, which waits for the client while it moves some bytes.
func (p *filePace) move(transfer func([]byte) (int, error), some []byte) (int, error) {
	began := time.Now()
	_ = p.deadline(began.Add(filePatience + time.Duration(p.moved/fileSpeed)*time.Second - p.waited))
	n, err := transfer(some)
	p.moved += n
	p.waited += time.Since(began)
	return n, err
}

// pacedReader reads a file that a client sends.
type pacedReader struct {
	file io.Reader
	pace filePace
}

func (r *pacedReader) Read(some []byte) (int, error) { return r.pace.move(r.file.Read, some) }

// pacedWriter writes a file for a client that reads it.
type pacedWriter struct {
	file io.Writer
	pace filePace
}

func (w *pacedWriter) Write(some []byte) (int, error) { return w.pace.move(w.file.Write, some) }

// ReceiveFile returns the body of a request that has a file, which is read as fast as the client sends it; nil if the
// request has none. A client that is too slow ends it with a timeout.
func ReceiveFile(http *fasthttp.RequestCtx) io.Reader {
	if http.RequestBodyStream() == nil {
		return nil
	}
	return &pacedReader{http.RequestBodyStream(), filePace{deadline: http.Conn().SetReadDeadline}}
}

// Files sends files, one to each account at a time.
type Files struct {
	sending *turns.Bound
	log     *slog.Logger
}

// NewFiles returns a Files that sends none.
func NewFiles(log *slog.Logger) *Files { return &Files{turns.NewBound(maxFiles, 1), log} }

// Send answers with a file that write writes while the client reads it, zipped if the client takes that. If write fails
// before it has written anything, so does Send. If it fails later, or the client reads too slowly, the connection ends
// before the file. The client may ask for the next file before it has read the last byte. ErrFileOfClient, ErrFiles.
func (f *Files) Send(
	http *fasthttp.RequestCtx, c turns.Client, write func(context.Context, io.Writer) error,
) error {
	switch f.sending.Take(c, 1) {
	case turns.ErrEach:
		return ErrFileOfClient
	case turns.ErrAll:
		return ErrFiles
	}
	file := f.begin(http, c, write)
	first := make([]byte, 4<<10)
	n, err := file.Read(first)
	failed := err != nil && !errors.Is(err, io.EOF)
	if failed || http.IsHead() {
		file.Close()
	}
	if failed {
		return err
	}
	http.Response.Header.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if AcceptsGzip(http) {
		http.Response.Header.SetContentEncoding("gzip")
	}
	if !http.IsHead() {
		http.SetBodyStream(struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(first[:n]), file), file}, -1)
	}
	return nil
}

// begin returns a file that write writes, which ends the client's turn before its last byte can be read.
func (f *Files) begin(
	http *fasthttp.RequestCtx, c turns.Client, write func(context.Context, io.Writer) error,
) *sentFile {
	read, to := io.Pipe()
	ctx, cancel := context.WithTimeout(context.Background(), MaxFileTime)
	file := &sentFile{PipeReader: read, cancel: cancel, ended: make(chan struct{})}
	zipped, paced, path := AcceptsGzip(http), newPacedWriter(to, http.Conn()), string(http.URI().PathOriginal())
	go func() {
		defer cancel()
		err := writeFile(ctx, paced, zipped, write)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {
			f.log.Warn("file interrupted", "path", service.RedactPath(path), "error", err)
		}
		f.sending.Leave(c, 1)
		close(file.ended)
		_ = to.CloseWithError(err)
	}()
	return file
}

func newPacedWriter(to io.Writer, conn net.Conn) *pacedWriter {
	return &pacedWriter{to, filePace{deadline: conn.SetWriteDeadline}}
}

// writeFile writes a file, zipped if that is asked for. After an error a zipped file has no end.
func writeFile(
	ctx context.Context, to io.Writer, zipped bool, write func(context.Context, io.Writer) error,
) error {
	if !zipped {
		return write(ctx, to)
	}
	zip := Compressors.Get().(*gzip.Writer)
	defer Compressors.Put(zip)
	zip.Reset(to)
	if err := write(ctx, zip); err != nil {
		return err
	}
	return zip.Close()
}

// sentFile is a file that is being sent.
type sentFile struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{} // closed when nothing is written any more
}

// Close ends the file and waits until nothing is written any more.
func (f *sentFile) Close() error {
	f.cancel()
	err := f.PipeReader.Close()
	<-f.ended
	return err
}
