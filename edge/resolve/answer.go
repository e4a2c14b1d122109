package resolve

import (
	"encoding/binary"
	"time"

	"linkstream/schema"
)

// The bytes of a link's entry are what visitors are answered, so that a request needs nothing else:
//
//	nothing                       the link is inactive
//	isTakenDown, isDeleted        a byte
//	a location                    which begins with a visible character
//	forwards, location            a byte before the location: the visitor's query string is appended to it
//	expires [| forwards], time in Unix seconds (8 bytes), length of the location (4 bytes), location, location after that time
//
// So a link without expiry and forwarding takes no more memory than its location.
const (
	isTakenDown = 0
	isDeleted   = 1
	forwards    = 4 // flags
	expires     = 8
)

const expiryLen = 1 + 8 + 4

// appendAnswer appends the bytes of a link's entry.
func appendAnswer(dst []byte, d *schema.Destination) []byte {
	switch {
	case d.Stopped == schema.Deleted:
		return append(dst, isDeleted)
	case d.Stopped != schema.NotStopped:
		return append(dst, isTakenDown)
	case !d.Active:
		return dst
	}
	flags := byte(0)
	if d.ForwardQuery {
		flags |= forwards
	}
	if d.ExpiresAt.IsZero() {
		if flags != 0 {
			dst = append(dst, flags)
		}
		return appendLocation(dst, d.URL)
	}
	dst = append(dst, flags|expires)
	dst = binary.BigEndian.AppendUint64(dst, uint64(d.ExpiresAt.Unix()))
	dst = append(dst, 0, 0, 0, 0)
	begin := len(dst)
	dst = appendLocation(dst, d.URL)
	binary.BigEndian.PutUint32(dst[begin-4:], uint32(len(dst)-begin))
	return appendLocation(dst, d.ExpiredURL)
}

// decodeAnswer returns where a link leads at the time now, or why it leads nowhere. It does not allocate.
func decodeAnswer(answer []byte, now time.Time) (location []byte, forward bool, stop Stop) {
	switch {
	case len(answer) == 0:
		return nil, false, Inactive
	case answer[0] > ' ':
		return answer, false, NotStopped
	case answer[0] == isTakenDown:
		return nil, false, TakenDown
	case answer[0] == isDeleted:
		return nil, false, Deleted
	}
	before, after, expiry := cutAnswer(answer)
	switch {
	case answer[0]&expires == 0 || now.Unix() < expiry:
		return before, answer[0]&forwards != 0, NotStopped
	case len(after) > 0:
		return after, false, NotStopped
	}
	return nil, false, Expired
}

// cutAnswer returns the locations before and after the expiry, which are empty if there are none.
func cutAnswer(answer []byte) (before, after []byte, expiry int64) {
	switch {
	case len(answer) == 0 || answer[0] == isTakenDown || answer[0] == isDeleted:
		return nil, nil, 0
	case answer[0] > ' ':
		return answer, nil, 0
	case answer[0]&expires == 0:
		return answer[1:], nil, 0
	}
	length := binary.BigEndian.Uint32(answer[9:])
	locations := answer[expiryLen:]
	return locations[:length:length], locations[length:], int64(binary.BigEndian.Uint64(answer[1:]))
}

// validAnswer reports whether appendAnswer can have returned bytes that come from outside of the process.
func validAnswer(answer []byte) bool {
	switch {
	case len(answer) == 0 || answer[0] > ' ':
		return true
	case answer[0] == isTakenDown || answer[0] == isDeleted:
		return len(answer) == 1
	case answer[0]&^(forwards|expires) != 0:
		return false
	case answer[0]&expires == 0:
		return len(answer) > 1
	}
	return len(answer) > expiryLen && uint64(binary.BigEndian.Uint32(answer[9:])) <= uint64(len(answer)-expiryLen)
}
