package dashboard

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"linkstream/api/qr"
	"linkstream/api/request"
)

const pathQR = pathLink + "/qr"

func (d *Dashboard) routeQR() {
	d.get(pathQR, request.Constant, d.ofLink(d.showQR))
	d.get(pathQR+".svg", request.Constant, func(c *call) error { return d.downloadQR(c, qr.SVG) })
	d.get(pathQR+".png", request.Pixels(qr.Price), func(c *call) error { return d.downloadQR(c, qr.PNG) })
}

// qrPage is the data of the page that styles a QR code.
type qrPage struct {
	Link   linkView
	Style  qr.Style
	Levels []option
	Query  string // of the image; "" for the default style
}

// Foreground returns the colour as a field of colours has it.
func (p qrPage) Foreground() string { return "#" + qr.Hex(p.Style.Foreground) }

// Background returns the colour as Foreground does.
func (p qrPage) Background() string { return "#" + qr.Hex(p.Style.Background) }

// qrStyle returns the style that the query asks for.
func (c *call) qrStyle() (qr.Style, problems) {
	args := c.http.QueryArgs()
	style, wrong := qr.Parse(func(field string) (string, bool) {
		return strings.TrimPrefix(c.query(field), "#"), args.Has(field) // as fields of colours have it
	})
	return style, wrong
}

func (d *Dashboard) showQR(c *call, link linkView) error {
	style, wrong := c.qrStyle()
	page := qrPage{Link: link, Style: style, Levels: options(style.Level, option{Value: "L", Label: "Low (7%)"},
		option{Value: "M", Label: "Medium (15%)"}, option{Value: "Q", Label: "High (25%)"},
		option{Value: "H", Label: "Highest (30%), for logos"})}
	if wrong != nil {
		page.Style.Size, page.Style.Margin = min(style.Size, qr.MaxSize), min(style.Margin, qr.MaxMargin)
		return d.invalid(c, "qr", page, wrong)
	}
	page.Query = "?" + url.Values{qr.FieldLevel: {style.Level}, qr.FieldForeground: {qr.Hex(style.Foreground)},
		qr.FieldBackground: {qr.Hex(style.Background)}, qr.FieldSize: {strconv.Itoa(style.Size)},
		qr.FieldMargin: {strconv.Itoa(style.Margin)}}.Encode()
	return d.render(c, "qr", page)
}

// downloadQR answers with the code of a link in the style that the query asks for.
func (d *Dashboard) downloadQR(c *call, format string) error {
	link, err := d.ownLink(c)
	if err != nil {
		return err
	}
	style, wrong := c.qrStyle()
	style.Format = format
	image, problem, err := style.Draw(link.ShortURL)
	switch {
	case err != nil:
		return err
	case wrong != nil || problem != "":
		return &failure{fasthttp.StatusUnprocessableEntity, "This QR code cannot be drawn", problem}
	}
	c.attach(link.fileName("."+format), style.ContentType())
	c.http.SetBody(image)
	return nil
}
