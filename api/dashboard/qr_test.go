package dashboard_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"linkstream/api/dashboard"
)

func TestQR(t *testing.T) {
	for _, address := range []string{"http://sho.rt/a", "https://go.example.com/aB3dE9x",
		"https://" + strings.Repeat("long-label.", 22) + "example/" + strings.Repeat("a", 20)} {
		code, err := dashboard.NewQR(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("PNG of %d letters", len(address)), func(t *testing.T) {
			data, err := dashboard.QRPNG(code)
			if err != nil {
				t.Fatal(err)
			}
			img, err := png.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			reads(t, img, address)
		})
		t.Run(fmt.Sprintf("SVG of %d letters", len(address)), func(t *testing.T) {
			reads(t, drawn(t, dashboard.QRSVG(code)), address)
		})
	}
	t.Run("what is too long is an error", func(t *testing.T) {
		if _, err := dashboard.NewQR(strings.Repeat("x", 10_000)); err == nil {
			t.Error("got none")
		}
	})
}

// reads decodes the code as a camera would, and checks that a white zone of four modules surrounds it.
func reads(t *testing.T, img image.Image, want string) {
	t.Helper()
	bitmap, err := gozxing.NewBinaryBitmapFromImage(img)
	if err != nil {
		t.Fatal(err)
	}
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.GetText() != want {
		t.Errorf("it says %q, want %q", result.GetText(), want)
	}
	size := img.Bounds().Dx()
	quiet := 0
	for quiet < size && light(img, quiet, quiet) { // up to the corner of the first finder, which is dark
		quiet++
	}
	module := 0
	for module < size-quiet && !light(img, quiet+module, quiet) {
		module++ // the finder's upper edge is seven modules long
	}
	if quiet*7 < 4*module {
		t.Errorf("the zone around it is %d pixels wide, a module %d/7", quiet, module)
	}
}

func light(img image.Image, x, y int) bool {
	return color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y > 127
}

var runs = regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`)

// drawn paints the SVG with eight pixels a module.
func drawn(t *testing.T, svg []byte) image.Image {
	t.Helper()
	var doc struct {
		ViewBox string `xml:"viewBox,attr"`
		Paths   []struct {
			Fill string `xml:"fill,attr"`
			D    string `xml:"d,attr"`
		} `xml:"path"`
	}
	if err := xml.Unmarshal(svg, &doc); err != nil {
		t.Fatal(err)
	}
	var size int
	if _, err := fmt.Sscanf(doc.ViewBox, "0 0 %d", &size); err != nil || len(doc.Paths) != 2 {
		t.Fatalf("view box %q, %d paths", doc.ViewBox, len(doc.Paths))
	}
	if all := fmt.Sprintf("M0 0h%dv%dH0z", size, size); doc.Paths[0].Fill != "#fff" || doc.Paths[0].D != all {
		t.Errorf("the ground is %+v", doc.Paths[0])
	}
	const scale = 8
	img := image.NewGray(image.Rect(0, 0, size*scale, size*scale))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	for _, run := range runs.FindAllStringSubmatch(doc.Paths[1].D, -1) {
		x, _ := strconv.Atoi(run[1])
		y, _ := strconv.Atoi(run[2])
		width, _ := strconv.Atoi(run[3])
		if run[3] != run[4] || doc.Paths[1].Fill != "#000" {
			t.Fatalf("a run of %v in %s", run, doc.Paths[1].Fill)
		}
		for py := y * scale; py < (y+1)*scale; py++ {
			for px := x * scale; px < (x+width)*scale; px++ {
				img.Pix[img.PixOffset(px, py)] = 0
			}
		}
	}
	return img
}
