package rest

import (
	"github.com/valyala/fasthttp"

	"linkstream/api/links"
	"linkstream/api/qr"
)

// linkQR answers GET /api/v1/links/{hash}/qr.
func (a *API) linkQR(c *call) error {
	args := c.http.QueryArgs()
	style, problems := qr.Parse(func(field string) (string, bool) { return string(args.Peek(field)), args.Has(field) })
	if problems != nil {
		fields := make(map[string][]string, len(problems))
		for field, problem := range problems {
			fields[field] = []string{problem}
		}
		return links.InvalidFields(fields)
	}
	link, err := a.ownedLink(c)
	if err != nil {
		return err
	}
	image, problem, err := style.Draw(a.shortener.ShortURL(link))
	switch {
	case err != nil:
		return err
	case problem != "":
		return invalidField(qr.FieldSize, problem)
	}
	c.http.SetStatusCode(fasthttp.StatusOK)
	c.http.SetContentType(style.ContentType())
	c.http.SetBody(image)
	return nil
}
