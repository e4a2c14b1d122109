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

// encodeAnswer returns the bytes of a link's entry.
func encodeAnswer(link *schema.Link) []byte {
	switch {
	case link.Stopped == schema.Deleted:
		return []byte{isDeleted}
	case link.Stopped != schema.NotStopped:
		return []byte{isTakenDown}
	case !link.Active:
		return nil
	}
	location := encodeLocation(link.URL)
	flags := byte(0)
	if link.ForwardQuery {
		flags |= forwards
	}
	if link.ExpiresAt.IsZero() {
		if flags == 0 {
			return location
		}
		return append([]byte{flags}, location...)
	}
	after := encodeLocation(link.ExpiredURL)
	answer := append(make([]byte, 0, expiryLen+len(location)+len(after)), flags|expires)
	answer = binary.BigEndian.AppendUint64(answer, uint64(link.ExpiresAt.Unix()))
	answer = binary.BigEndian.AppendUint32(answer, uint32(len(location)))
	return append(append(answer, location...), after...)
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

// validAnswer reports whether encodeAnswer can have returned bytes that come from outside of the process.
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
