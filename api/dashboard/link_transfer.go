package dashboard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/api/transfer"
	"linkstream/schema"
	"linkstream/schema/turns"
)

const (
	pathExport = Root + "/export.csv"
	partImport = "import"
)

// Limits of transfers.
const (
	maxExports   = 64               // at a time, one of each account; each has a page of links in memory
	maxTransfer  = 30 * time.Minute // for a file
	partWithin   = time.Minute      // for each MiB of a file that is received
	readWithin   = time.Minute      // for reading a file, in addition to the time at lowestSpeed
	lowestSpeed  = 16 << 10         // bytes per second at which a client reads a file
	maxMultipart = transfer.MaxFile + 64<<10
	maxField     = 1 << 10 // of a form with a file
)

func (d *Dashboard) routeTransfer() {
	d.get(pathImport, request.Constant, d.showImport)
	d.route(fasthttp.MethodPost, pathImport, admitUpload, request.Files, d.receiveFile)
	d.post(pathImport+"/start", request.Files, d.startImport)
	d.get(pathImport+"/errors.csv", request.Files, d.downloadErrors)
	d.get(pathExport, request.Files, d.exportLinks)
}

// importPage is the data of the page that imports files.
type importPage struct {
	Job     *transfer.Job // nil if the account has no file
	Domains []option      // of links whose host is not a domain of the account
}

func (p importPage) live() (part, path string, every time.Duration) {
	if p.Job == nil || !p.Job.Working() {
		return partImport, "", 0
	}
	return partImport, pathImport + "?part=" + partImport, pollOften
}

func (d *Dashboard) importPage(c *call) (page importPage, err error) {
	job, err := d.Imports.Find(c.ctx, c.account.ID)
	if err == nil {
		page.Job = &job
	}
	if err != nil && schema.ErrorCode(err) != schema.CodeNotFound || c.query("part") == partImport {
		return page, notFoundIsNil(err)
	}
	form, err := d.shortenForm(c, "")
	for _, domain := range form.Domains {
		page.Domains = append(page.Domains, option{Value: strconv.FormatInt(domain.ID, 10), Label: domain.Host})
	}
	page.Domains = append([]option{{Value: "0", Label: form.Default}}, page.Domains...)
	return page, err
}

func notFoundIsNil(err error) error {
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return nil
	}
	return err
}

func (d *Dashboard) showImport(c *call) error {
	page, err := d.importPage(c)
	if err != nil {
		return err
	}
	return d.renderLive(c, "import", page)
}

// receiveFile stores a file of the form, and begins to check it.
func (d *Dashboard) receiveFile(c *call) error {
	attempts := d.byClient(c, importsByAddress, importsBySite, importsByAccount.By(strconv.FormatInt(c.account.ID, 10)))
	wait, err := d.attempts.Allow(c.ctx, attempts...)
	if err != nil {
		return err
	}
	if wait > 0 {
		page, err := d.importPage(c)
		return d.tooMany(c, "import", page, "Too many files.", wait, err)
	}
	file, domainID, err := c.formFile()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), maxTransfer)
		defer cancel()
		err = d.Imports.Receive(ctx, c.account.ID, file.FileName(), domainID, file, func() { c.keepAlive() })
	}
	if errors.Is(err, transfer.ErrTooLarge) {
		c.discardRest()
	}
	c.setDeadline()
	return d.importAnswer(c, err)
}

// discardRest reads more of a file that is too large: a browser that is still sending may not see the answer.
func (c *call) discardRest() {
	if stream := c.http.RequestBodyStream(); stream != nil {
		c.keepAlive()
		_, _ = io.CopyN(io.Discard, stream, maxMultipart)
	}
}

// formFile returns the file of the request's form, and the domain that a field before it names.
func (c *call) formFile() (file *multipart.Part, domainID *int64, err error) {
	stream := c.http.RequestBodyStream()
	switch {
	case stream == nil:
		return nil, nil, transfer.ErrEmpty
	case c.http.Request.Header.ContentLength() > maxMultipart:
		return nil, nil, transfer.ErrTooLarge
	}
	return readFileForm(stream, string(c.http.Request.Header.ContentType()), c.ownToken)
}

// readFileForm reads a form up to its file. The form's token, which own judges, must come before it.
func readFileForm(
	body io.Reader, contentType string, own func(token []byte) bool,
) (file *multipart.Part, domainID *int64, err error) {
	kind, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" {
		return nil, nil, transfer.ErrEmpty
	}
	form := multipart.NewReader(io.MultiReader(io.LimitReader(body, maxMultipart), tooLarge{}), parameters["boundary"])
	for trusted := false; ; {
		part, err := form.NextRawPart()
		if err != nil {
			return nil, nil, transfer.ErrEmpty
		}
		if part.FormName() == "file" {
			if !trusted {
				return nil, nil, errForged
			}
			return part, domainID, nil
		}
		value, err := io.ReadAll(io.LimitReader(part, maxField))
		if err != nil {
			return nil, nil, transfer.ErrEmpty
		}
		switch part.FormName() {
		case "csrf":
			if trusted = own(value); !trusted {
				return nil, nil, errForged
			}
		case "domain_id":
			if id := parseID(clean(value)); id > 0 {
				domainID = &id
			}
		}
	}
}

// tooLarge is the reader that follows the last permitted byte.
type tooLarge struct{}

func (tooLarge) Read([]byte) (int, error) { return 0, transfer.ErrTooLarge }

// keepAlive gives the client time for the next MiB of a file.
func (c *call) keepAlive() { _ = c.http.Conn().SetReadDeadline(time.Now().Add(partWithin)) }

// importAnswer redirects to the page of imports. If err is not nil, it answers with that page and the problem.
func (d *Dashboard) importAnswer(c *call, err error) error {
	var reason *schema.Error
	if err == nil {
		return c.redirect(pathImport)
	}
	for _, known := range []error{transfer.ErrBusy, transfer.ErrWorking, transfer.ErrTooLarge, transfer.ErrEmpty,
		transfer.ErrGone} {
		if errors.Is(err, known) && errors.As(err, &reason) {
			page, err := d.importPage(c)
			if err != nil {
				return err
			}
			return d.invalid(c, "import", page, problems{"file": reason.Message, "": reason.Message})
		}
	}
	var broken net.Error
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &broken) {
		return &failure{fasthttp.StatusBadRequest, "The file was not received completely", "Please upload it again."}
	}
	return err
}

// startImport imports the file that was uploaded and checked.
func (d *Dashboard) startImport(c *call) error {
	return d.importAnswer(c, d.Imports.Start(c.ctx, c.account.ID, c.form("id")))
}

func (d *Dashboard) downloadErrors(c *call) error {
	lines, err := d.Imports.Errors(c.ctx, c.account.ID)
	if err != nil {
		return err
	}
	c.attach("import-errors.csv", "text/csv; charset=utf-8; header=present")
	c.http.SetBodyString(lines)
	return nil
}

var (
	errExporting = &failure{fasthttp.StatusTooManyRequests, "An export of your account is under way",
		"Please try again when it has ended."}
	errExports = &failure{fasthttp.StatusServiceUnavailable, "Other exports are under way",
		"Please try again in a minute."}
)

// exportLinks sends the links of the list, or all links of the account, while it reads them. If a store fails, or the
// client reads too slowly, the connection ends before the file.
func (d *Dashboard) exportLinks(c *call) error {
	filter, err := d.Shortener.Filter(c.ctx, filterOf(c.query).request(c))
	if p, invalid := problemsOf(err); invalid {
		return &failure{fasthttp.StatusUnprocessableEntity, "These links cannot be exported",
			strings.Join(slices.Sorted(maps.Values(p)), " ")}
	}
	if err != nil {
		return err
	}
	switch d.exports.Take(turns.Account(c.account.ID), 1) {
	case turns.ErrEach:
		return errExporting
	case turns.ErrAll:
		return errExports
	}
	file := d.beginExport(c, filter)
	first := make([]byte, 4<<10)
	n, err := file.Read(first) // nothing was sent until here
	if err != nil || c.http.IsHead() {
		file.Close()
	}
	if err != nil {
		return err
	}
	c.http.Response.Header.Set(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if request.AcceptsGzip(c.http) {
		c.http.Response.Header.SetContentEncoding("gzip")
	}
	c.attach("links-"+time.Now().UTC().Format(time.DateOnly)+".csv", "text/csv; charset=utf-8; header=present")
	if !c.http.IsHead() {
		c.http.SetBodyStream(struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(first[:n]), file), file}, -1)
	}
	return nil
}

// beginExport returns the file of an export of the account, which ends before its last byte can be read.
func (d *Dashboard) beginExport(c *call, filter schema.LinkFilter) *exportedFile {
	read, write := io.Pipe()
	ctx, cancel := context.WithTimeout(context.Background(), maxTransfer)
	file := &exportedFile{PipeReader: read, cancel: cancel, ended: make(chan struct{})}
	account, zipped, to := c.account.ID, request.AcceptsGzip(c.http), &patientWriter{to: write, conn: c.http.Conn()}
	go func() {
		defer cancel()
		err := d.export(ctx, account, filter, to, zipped)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {
			d.Log.Warn("export interrupted", "account", account, "error", err)
		}
		d.exports.Leave(turns.Account(account), 1)
		close(file.ended)
		_ = write.CloseWithError(err)
	}()
	return file
}

// exportedFile is the file of an export.
type exportedFile struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{} // closed when the export has ended
}

// Close ends the export and waits for its end.
func (f *exportedFile) Close() error {
	f.cancel()
	err := f.PipeReader.Close()
	<-f.ended
	return err
}

// export writes the links of the account that match filter, zipped if that is asked for. After an error the zipped file
// has no end.
func (d *Dashboard) export(
	ctx context.Context, account int64, filter schema.LinkFilter, to io.Writer, zipped bool,
) error {
	exporter := transfer.NewExporter(d.Shortener.Base(), d.DB, d.Clicks.Of(account))
	if !zipped {
		_, err := exporter.Export(ctx, account, filter, to)
		return err
	}
	zip := compressors.Get().(*gzip.Writer)
	defer compressors.Put(zip)
	zip.Reset(to)
	if _, err := exporter.Export(ctx, account, filter, zip); err != nil {
		return err
	}
	return zip.Close()
}

// patientWriter lets the client of a connection take readWithin for a whole file, in addition to a second per
// lowestSpeed bytes. The time in which the client waits for the file does not count.
type patientWriter struct {
	to     io.Writer
	conn   net.Conn
	sent   int
	waited time.Duration // for the client
}

func (w *patientWriter) Write(some []byte) (int, error) {
	began := time.Now()
	_ = w.conn.SetWriteDeadline(began.Add(readWithin + time.Duration(w.sent/lowestSpeed)*time.Second - w.waited))
	n, err := w.to.Write(some)
	w.sent += n
	w.waited += time.Since(began)
	return n, err
}
