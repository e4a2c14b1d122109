package e2e_test

import (
	"fmt"
	"image"
	"image/color"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	"golang.org/x/sys/unix"

	"linkstream/schema/testkit"
)

// onTerminal runs the command on a terminal of 100 columns, types input, and returns what the terminal shows.
func (u *commandUser) onTerminal(t *testing.T, input string, args ...string) string {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	testkit.Must(t, err)
	defer screen.Close()
	fd := int(screen.Fd())
	testkit.Must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	testkit.Must(t, err)
	testkit.Must(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 100}))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	testkit.Must(t, err)
	cmd := u.command(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	testkit.Must(t, cmd.Start())
	tty.Close()
	var shown testkit.Buffer
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		part := make([]byte, 4096)
		for { // until the command closes the terminal: EIO
			n, err := screen.Read(part)
			_, _ = shown.Write(part[:n])
			if err != nil {
				return
			}
		}
	}()
	if input != "" {
		testkit.Eventually(t, "the command asks without an echo", func() bool {
			mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
			return err == nil && mode.Lflag&unix.ECHO == 0
		})
		_, err = screen.WriteString(input)
		testkit.Must(t, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("linkstream %q: %v\n%s", args, err, shown.String())
	}
	<-closed
	return strings.ReplaceAll(shown.String(), "\r\n", "\n")
}

func testCommandTerminal(t *testing.T, s *system, u *commandUser) {
	newcomer := newCommandUser(t)
	if shown := newcomer.onTerminal(t, s.token+"\n", "login", s.api); !strings.Contains(shown, "API token: \n") ||
		!strings.Contains(shown, s.email) || strings.Contains(shown, s.token) {
		t.Errorf("login shows %q", shown)
	}
	long := "https://example.com/" + strings.Repeat("long/", 40)
	u.run(t, "shorten", long, "--alias", "long")
	lines := strings.Split(u.onTerminal(t, "", "list"), "\n")
	if !strings.HasPrefix(lines[0], "HASH ") || !strings.HasPrefix(lines[1], "long ") ||
		!strings.HasSuffix(lines[1], "…") {
		t.Errorf("list shows %q", lines[:2])
	}
	for _, line := range lines {
		if len([]rune(line)) > 100 {
			t.Errorf("list shows %d columns: %s", len([]rune(line)), line)
		}
	}
	if shown := u.onTerminal(t, "", "report", "clicked"); !strings.Contains(shown, strings.Repeat("█", 50)+" 3\n") ||
		!strings.Contains(shown, "clicked  ") || !strings.Contains(shown, "browser   Firefox") {
		t.Errorf("report shows\n%s", shown)
	}
	if shown := u.onTerminal(t, "", "export"); !strings.HasPrefix(shown, "short_url,") {
		t.Errorf("export shows\n%s", shown)
	}
	testkit.Equal(t, "the code on the terminal", readCode(t, u.onTerminal(t, "", "qr", "clicked")), s.edge+"/clicked")
}

// readCode reads a QR code of half blocks, as a camera does.
func readCode(t *testing.T, shown string) string {
	t.Helper()
	const scale = 4
	lines := strings.Split(strings.NewReplacer("\x1b[30;107m", "", "\x1b[0m", "").Replace(strings.TrimSpace(shown)), "\n")
	size := len([]rune(lines[0]))
	img := image.NewGray(image.Rect(0, 0, (size+8)*scale, (size+8)*scale))
	for i := range img.Pix {
		img.Pix[i] = 0xff
	}
	for y, line := range lines {
		for x, r := range []rune(line) {
			for dy := range 2 * scale {
				if upper := dy < scale; r == '█' || r == '▀' && upper || r == '▄' && !upper {
					for dx := range scale {
						img.SetGray((x+4)*scale+dx, (2*y+4)*scale+dy, color.Gray{})
					}
				}
			}
		}
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(img)
	testkit.Must(t, err)
	read, err := qrcode.NewQRCodeReader().Decode(bitmap, nil)
	testkit.Must(t, err)
	return read.GetText()
}
