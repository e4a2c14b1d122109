// Package socket makes TCP connections cheaper that carry many small requests, one after another.
package socket
