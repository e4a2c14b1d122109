// Package qr draws QR codes (ISO/IEC 18004) of short links as SVG and PNG, in colours that cameras can tell apart.
package qr

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strconv"
	"strings"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"
	"github.com/valyala/fasthttp"
)

// Limits of a Style.
const (
	MinSize   = 64
	MaxSize   = 2048
	MaxMargin = 16
)

// The fields of a Style, as queries and problems name them.
const (
	FieldFormat     = "format"
	FieldSize       = "size"
	FieldLevel      = "level"
	FieldForeground = "foreground"
	FieldBackground = "background"
	FieldMargin     = "margin"
)

// The formats of an image.
const (
	SVG = "svg"
	PNG = "png"
)

// Style says how a code looks. Default has the values that Parse begins with.
type Style struct {
	Format                 string
	Size                   int         // width and height in pixels
	Level                  string      // of error correction: L, M, Q or H
	Foreground, Background color.NRGBA // of modules and of what is around them
	Margin                 int         // width of the quiet zone in modules; the standard asks for 4
}

// Default is a black code on white that survives 15 % of damage.
var Default = Style{SVG, 512, "M", color.NRGBA{A: 255}, color.NRGBA{255, 255, 255, 255}, 4}

// levels are the levels of error correction, which restore up to 7, 15, 25 and 30 % of a code.
var levels = map[string]qr.ErrorCorrectionLevel{"L": qr.L, "M": qr.M, "Q": qr.Q, "H": qr.H}

// minContrast is the least difference of reflectances that ISO/IEC 15415 grades as 2, which is what printed codes
// should have.
const minContrast = 0.4

// Parse returns the style that a query asks for. problems names each invalid field with a sentence; nil if there is
// none.
func Parse(get func(field string) (value string, given bool)) (style Style, problems map[string]string) {
	style, problems = Default, map[string]string{}
	number := func(field string, into *int, least, most int) {
		text, given := get(field)
		if !given {
			return
		}
		n, err := strconv.Atoi(text)
		if *into = n; err != nil || n < least || n > most {
			problems[field] = fmt.Sprintf("The %s must be an integer of %d to %d.", field, least, most)
		}
	}
	colour := func(field string, into *color.NRGBA) {
		text, given := get(field)
		if !given {
			return
		}
		n, err := strconv.ParseUint(text, 16, 32)
		if *into = (color.NRGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255}); err != nil || len(text) != 6 {
			problems[field] = "A colour has six hexadecimal digits, such as 1A2B3C."
		}
	}
	if text, given := get(FieldFormat); given {
		if style.Format = text; text != SVG && text != PNG {
			problems[FieldFormat] = "The format must be svg or png."
		}
	}
	if text, given := get(FieldLevel); given {
		if _, known := levels[text]; !known {
			problems[FieldLevel] = "The level must be L, M, Q or H."
		}
		style.Level = text
	}
	number(FieldSize, &style.Size, MinSize, MaxSize)
	number(FieldMargin, &style.Margin, 0, MaxMargin)
	colour(FieldForeground, &style.Foreground)
	colour(FieldBackground, &style.Background)
	if problems[FieldForeground]+problems[FieldBackground] == "" &&
		luminance(style.Background)-luminance(style.Foreground) < minContrast {
		problems[FieldForeground] = "Cameras may not read these colours: choose a darker foreground or a lighter background."
	}
	if len(problems) > 0 {
		return style, problems
	}
	return style, nil
}

// Price returns the price of drawing the code that a request asks for, by the pixels of the largest image that it may
// get.
func Price(http *fasthttp.RequestCtx) int {
	size, err := strconv.Atoi(string(http.QueryArgs().Peek(FieldSize)))
	if err != nil {
		size = Default.Size
	}
	size = min(max(size, MinSize), MaxSize)
	return 1 + size*size/(256*256)
}

// luminance returns the relative luminance of a colour as WCAG 2 defines it, of 0 to 1.
func luminance(c color.NRGBA) float64 {
	linear := func(v uint8) float64 {
		if s := float64(v) / 255; s > 0.04045 {
			return math.Pow((s+0.055)/1.055, 2.4)
		}
		return float64(v) / 255 / 12.92
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// Hex returns a colour as six digits.
func Hex(c color.NRGBA) string { return fmt.Sprintf("%02X%02X%02X", c.R, c.G, c.B) }

// ContentType returns the media type of the image.
func (s Style) ContentType() string {
	if s.Format == PNG {
		return "image/png"
	}
	return "image/svg+xml"
}

// Draw returns the image of the code for a text. problem is a sentence about the size if the image would have less than
// a pixel per module.
func (s Style) Draw(text string) (image []byte, problem string, err error) {
	code, err := qr.Encode(text, levels[s.Level], qr.Auto)
	if err != nil {
		return nil, "", fmt.Errorf("encode %q as a QR code: %w", text, err)
	}
	modules := code.Bounds().Dx() + 2*s.Margin
	if s.Format == SVG {
		return s.svg(code, modules), "", nil
	}
	if modules > s.Size {
		return nil, fmt.Sprintf("This code needs %d pixels at least.", modules), nil
	}
	image, err = s.png(code, modules)
	return image, "", err
}

func dark(code barcode.Barcode, x, y int) bool { return code.At(x, y) == color.Black }

// svg draws each run of dark modules as a rectangle of one path.
func (s Style) svg(code barcode.Barcode, modules int) []byte {
	all := strconv.Itoa(modules)
	svg := fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %s %s" `+
		`shape-rendering="crispEdges">`+
		`<path fill="#%s" d="M0 0h%sv%sH0z"/><path fill="#%s" d="`, s.Size, s.Size, all, all,
		strings.ToLower(Hex(s.Background)), all, all, strings.ToLower(Hex(s.Foreground)))
	size := code.Bounds().Dx()
	for y := range size {
		for x := 0; x < size; x++ {
			start := x
			for x < size && dark(code, x, y) {
				x++
			}
			if x > start {
				svg = fmt.Appendf(svg, "M%d %dh%dv1h-%dz", start+s.Margin, y+s.Margin, x-start, x-start)
			}
		}
	}
	return append(svg, "\"/></svg>\n"...)
}

// png draws modules of the same whole number of pixels; what is left over widens the quiet zone. All rows of pixels
// of a row of modules are copies of one.
func (s Style) png(code barcode.Barcode, modules int) ([]byte, error) {
	scale, size := s.Size/modules, code.Bounds().Dx()
	first := (s.Size - scale*size) / 2
	img := image.NewPaletted(image.Rect(0, 0, s.Size, s.Size), color.Palette{s.Background, s.Foreground})
	row := make([]byte, s.Size)
	for y := range size {
		for x := range size {
			index := byte(0)
			if dark(code, x, y) {
				index = 1
			}
			for i := range scale {
				row[first+x*scale+i] = index
			}
		}
		for i := range scale {
			copy(img.Pix[(first+y*scale+i)*img.Stride:], row)
		}
	}
	var file bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&file, img); err != nil {
		return nil, fmt.Errorf("draw a QR code as PNG: %w", err)
	}
	return file.Bytes(), nil
}
