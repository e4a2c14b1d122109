// Package qr draws QR codes (ISO/IEC 18004) of short links as SVG and PNG, in colours that cameras can tell apart.
package qr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image/color"
	"strconv"
	"strings"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"
	"github.com/klauspost/compress/zlib"
	"github.com/valyala/fasthttp"

	"linkstream/schema"
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
	return 1 + size*size/(1024*1024) // 1.5 ms of CPU each
}

func luminance(c color.NRGBA) float64 { return schema.Color{R: c.R, G: c.G, B: c.B}.Luminance() }

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

// png paints the modules of the code and of its margin so that they fill the image: where they do not divide its size,
// a module is a pixel wider than another one. Rows of pixels in one row of modules are equal, which the filter Up
// writes as zeros.
func (s Style) png(code barcode.Barcode, modules int) ([]byte, error) {
	moduleAt := func(pixel int) int { return pixel*modules/s.Size - s.Margin }
	columns := make([]int, s.Size)
	for x := range columns {
		columns[x] = moduleAt(x)
	}
	var pixels bytes.Buffer
	compressed, err := zlib.NewWriterLevel(&pixels, zlib.BestSpeed)
	if err != nil {
		return nil, err
	}
	size, row := code.Bounds().Dx(), make([]byte, 1+(s.Size+7)/8) // the filter, and eight pixels per byte
	for y := range s.Size {
		module := moduleAt(y)
		repeats := y > 0 && module == moduleAt(y-1)
		if clear(row); repeats {
			row[0] = filterUp
		} else if module >= 0 && module < size {
			for x, column := range columns {
				if column >= 0 && column < size && dark(code, column, module) {
					row[1+x/8] |= 0x80 >> (x % 8)
				}
			}
		}
		_, _ = compressed.Write(row) // neither fails: a buffer takes everything
	}
	_ = compressed.Close()
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(s.Size)), uint32(s.Size))
	image := []byte("\x89PNG\r\n\x1a\n")
	image = appendChunk(image, "IHDR", append(header, 1, paletted, 0, 0, 0)) // a bit per pixel
	image = appendChunk(image, "PLTE", []byte{s.Background.R, s.Background.G, s.Background.B,
		s.Foreground.R, s.Foreground.G, s.Foreground.B})
	image = appendChunk(image, "IDAT", pixels.Bytes())
	return appendChunk(image, "IEND", nil), nil
}

// Numbers of the PNG specification: a filter of rows, and a colour type.
const (
	filterUp = 2
	paletted = 3
)

// appendChunk appends a chunk of a PNG file.
func appendChunk(dst []byte, kind string, data []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(data)))
	start := len(dst)
	dst = append(append(dst, kind...), data...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}
