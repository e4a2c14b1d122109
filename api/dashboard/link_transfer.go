package dashboard

import (
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

// Limits of uploads.
const (
	maxMultipart = transfer.MaxFile + 64<<10
	maxField     = 1 << 10 // of a form with a file
	maxFields    = 100
)

// mapPrefix begins the names of the form's fields that say which column a field has.
const mapPrefix = "map."

func (d *Dashboard) routeTransfer() {
	d.get(pathImport, request.Constant, d.showImport)
	d.route(fasthttp.MethodPost, pathImport, admitUpload, request.Uploads, d.receiveFile)
	d.post(pathImport+"/start", request.Constant, d.startImport)
	d.get(pathImport+"/errors.csv", request.Sends, d.downloadErrors)
	d.get(pathExport, request.Sends, d.exportLinks)
}

// importPage is the data of the page that imports files.
type importPage struct {
	Job     *transfer.Job // nil if the account has no file
	Domains []option      // of links whose host is not a domain of the account
	Columns []string      // of the last file
	Fields  []mappedField // that a column may be mapped to
	Ignored map[string]bool
	Failed  bool // the last file cannot be imported
}

// mappedField is a field with the column that was chosen for it, "" if none was.
type mappedField struct{ Name, Column string }

// setColumns lets the owner of the last file say what its columns are.
func (p *importPage) setColumns() {
	p.Ignored, p.Failed = map[string]bool{}, p.Job.Phase == transfer.PhaseFailed
	for _, column := range p.Job.Report.Columns {
		p.Columns = append(p.Columns, column.Name)
	}
	for _, field := range transfer.MapFields() {
		p.Fields = append(p.Fields, mappedField{field, p.Job.Choice.Map[field]})
	}
	for _, column := range p.Job.Choice.Ignore {
		p.Ignored[column] = true
	}
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
		page.setColumns()
	}
	if err != nil && schema.ErrorCode(err) != schema.CodeNotFound || c.query("part") == partImport {
		return page, notFoundIsNil(err)
	}
	form, err := d.shortenForm(c)
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
	body := request.ReceiveFile(c.http)
	file, choice, err := c.formFile(body)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), request.MaxFileTime)
		defer cancel()
		err = d.Imports.Receive(ctx, c.account.ID, file.FileName(), choice, file)
	}
	if errors.Is(err, transfer.ErrTooLarge) { // a browser that is still sending may not see the answer
		_, _ = io.CopyN(io.Discard, body, maxMultipart)
	}
	c.setDeadline()
	return d.importAnswer(c, err)
}

// formFile returns the file of the form in the request's body, and what the fields before it say.
func (c *call) formFile(body io.Reader) (file *multipart.Part, choice transfer.Choice, err error) {
	switch {
	case body == nil:
		return nil, choice, transfer.ErrEmpty
	case c.http.Request.Header.ContentLength() > maxMultipart:
		return nil, choice, transfer.ErrTooLarge
	}
	return readFileForm(body, string(c.http.Request.Header.ContentType()), c.ownToken)
}

// readFileForm reads a form up to its file. The form's token, which own judges, must come before it.
func readFileForm(
	body io.Reader, contentType string, own func(token []byte) bool,
) (file *multipart.Part, choice transfer.Choice, err error) {
	kind, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/form-data" {
		return nil, choice, transfer.ErrEmpty
	}
	form := multipart.NewReader(io.MultiReader(io.LimitReader(body, maxMultipart), tooLarge{}), parameters["boundary"])
	choice.Map = map[string]string{}
	for trusted, fields := false, 0; ; fields++ {
		part, err := form.NextRawPart()
		if err != nil || fields > maxFields {
			return nil, choice, transfer.ErrEmpty
		}
		if part.FormName() == "file" {
			if !trusted {
				return nil, choice, errForged
			}
			return part, choice, nil
		}
		value, err := io.ReadAll(io.LimitReader(part, maxField))
		if err != nil {
			return nil, choice, transfer.ErrEmpty
		}
		text := clean(value)
		switch name := part.FormName(); {
		case name == "csrf":
			if trusted = own(value); !trusted {
				return nil, choice, errForged
			}
		case text == "":
		case name == "domain_id":
			if id := parseID(text); id > 0 {
				choice.DomainID = &id
			}
		case name == "source":
			choice.Source = text
		case name == "ignore":
			choice.Ignore = append(choice.Ignore, text)
		case strings.HasPrefix(name, mapPrefix):
			choice.Map[strings.TrimPrefix(name, mapPrefix)] = text
		}
	}
}

// tooLarge is the reader that follows the last permitted byte.
type tooLarge struct{}

func (tooLarge) Read([]byte) (int, error) { return 0, transfer.ErrTooLarge }

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
		return &failure{fasthttp.StatusBadRequest, "The upload was incomplete", "Please upload it again."}
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
	return d.sendFile(c, "import-errors.csv", func(_ context.Context, to io.Writer) error {
		_, err := io.WriteString(to, lines)
		return err
	})
}

var (
	errExporting = &failure{fasthttp.StatusTooManyRequests, "Another export is running",
		"Please try again when it has finished."}
	errExports = &failure{fasthttp.StatusServiceUnavailable, "Other exports are running",
		"Please try again in a minute."}
)

// sendFile sends a file of CSV that write writes.
func (d *Dashboard) sendFile(c *call, name string, write func(context.Context, io.Writer) error) error {
	switch err := d.files.Send(c.http, turns.Account(c.account.ID), write); {
	case errors.Is(err, request.ErrFileOfClient):
		return errExporting
	case errors.Is(err, request.ErrFiles):
		return errExports
	case err != nil:
		return err
	}
	c.attach(name, "text/csv; charset=utf-8; header=present")
	return nil
}

// exportLinks sends the links of the list, or all links of the account, while it reads them.
func (d *Dashboard) exportLinks(c *call) error {
	filter, err := d.Shortener.Filter(c.ctx, filterOf(c.query).request(c))
	if p, invalid := problemsOf(err); invalid {
		return &failure{fasthttp.StatusUnprocessableEntity, "These links cannot be exported",
			strings.Join(slices.Sorted(maps.Values(p)), " ")}
	}
	if err != nil {
		return err
	}
	account := c.account.ID
	exporter := transfer.NewExporter(d.Shortener.Base(), d.DB, d.Clicks.Of(account))
	return d.sendFile(c, "links-"+time.Now().UTC().Format(time.DateOnly)+".csv",
		func(ctx context.Context, to io.Writer) error {
			_, err := exporter.Export(ctx, account, filter, to)
			return err
		})
}
