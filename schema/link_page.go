package schema

// OrdinalBlock is the number of ordinals in a block: block 0 has those below it, block 1 the next ones.
const OrdinalBlock = 1024

// OrdinalGap says how many links of a block of an account's ordinals were deleted. Stores keep a row for each block
// with deleted links, so that every page of a list costs about the same: a page is found by adding up blocks.
type OrdinalGap struct{ Block, Missing int64 }

// PageRange returns the place of the page of size links after offset links. last is the highest ordinal that a link of
// the account has or had. The page begins after the first skip links with ordinals from newest down to oldest; this
// range includes a whole page unless the list ends. gaps are in descending order of blocks. A range has at most two
// blocks and a page of links.
func PageRange(last int64, gaps []OrdinalGap, offset, size int64) (newest, oldest, skip int64) {
	newest, _, skip = ordinalAfter(last, gaps, offset)
	_, oldest, _ = ordinalAfter(last, gaps, offset+size-1)
	return newest, max(oldest, 1), skip
}

// ordinalAfter returns ordinals between which is the link that follows offset newer ones, and how many links between
// them are newer than that one. They are equal unless it is in a block with gaps.
func ordinalAfter(last int64, gaps []OrdinalGap, offset int64) (newest, oldest, skip int64) {
	next, left := last, offset // the newest ordinal that has not been passed yet, and how many links to pass
	for _, gap := range gaps {
		bottom, top := max(gap.Block*OrdinalBlock, 1), min((gap.Block+1)*OrdinalBlock-1, last)
		if before := next - top; left < before {
			break
		} else {
			left -= before
		}
		links := top - bottom + 1 - gap.Missing
		if left < links {
			return top, bottom, left
		}
		left -= links
		next = bottom - 1
	}
	return next - left, next - left, 0
}
