package dashboard

import (
	"fmt"
	"strconv"

	"github.com/skip2/go-qrcode"
)

// qrModule is the size of a module (a dot of the code) in pixels, large enough for print.
const qrModule = 16

// newQR returns the QR code of a short URL. Error correction level M restores up to 15 % damage; the quiet zone has the
// four modules that ISO/IEC 18004 requires.
func newQR(shortURL string) (*qrcode.QRCode, error) {
	code, err := qrcode.New(shortURL, qrcode.Medium)
	if err != nil {
		return nil, fmt.Errorf("encode %q as a QR code: %w", shortURL, err)
	}
	return code, nil
}

func qrPNG(code *qrcode.QRCode) ([]byte, error) {
	png, err := code.PNG(-qrModule) // a negative size is that of a module
	if err != nil {
		return nil, fmt.Errorf("draw a QR code as PNG: %w", err)
	}
	return png, nil
}

// qrSVG draws each run of dark modules as a rectangle of one path. The colors are fixed, because cameras do not read
// inverted codes.
func qrSVG(code *qrcode.QRCode) []byte {
	modules := code.Bitmap()
	size := strconv.Itoa(len(modules))
	svg := []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ` + size + ` ` + size +
		`" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h` + size + `v` + size + `H0z"/><path fill="#000" d="`)
	for y, line := range modules {
		for x := 0; x < len(line); x++ {
			start := x
			for x < len(line) && line[x] {
				x++
			}
			if x > start {
				svg = fmt.Appendf(svg, "M%d %dh%dv1h-%dz", start, y, x-start, x-start)
			}
		}
	}
	return append(svg, "\"/></svg>\n"...)
}
