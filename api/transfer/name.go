package transfer

import "linkstream/api/links"

// fieldFormer has the former hashes of a link, separated by spaces.
const fieldFormer = links.FieldFormerHashes

const noteFormer = "Former names of a link that cannot lead to it, such as names of other links, are left out."

// keepNames lets links have the former names that their rows have, also links that were present.
func (s *session) keepNames(items []*item) error {
	for _, it := range items {
		if len(it.former) == 0 || it.link.ID == 0 {
			continue
		}
		left, err := s.shortener.AddFormerHashes(s.ctx, it.link, it.former)
		if err != nil {
			return err
		}
		if left > 0 {
			it.note(noteFormer)
		}
	}
	return nil
}
