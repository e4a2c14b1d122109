package rest

import (
	"github.com/valyala/fasthttp"

	"linkstream/schema"
)

type linkStats struct {
	Success     bool   `json:"success"`
	Hash        string `json:"hash"`
	ShortURL    string `json:"short_url"`
	OriginalURL string `json:"original_url"`
	IsActive    bool   `json:"is_active"`
	Stats       stats  `json:"stats"`
}

type stats struct {
	TotalClicks int64                   `json:"total_clicks"`
	ClicksByDay []dayClicks             `json:"clicks_by_day"`
	Devices     map[schema.Device]int64 `json:"devices"`
	Browsers    map[string]int64        `json:"browsers"`
}

type dayClicks struct {
	Date  string `json:"date"`
	Total int64  `json:"total"`
}

// linkStats answers GET /api/v1/stats/{hash}.
func (a *API) linkStats(c *call, link schema.Link) error {
	counts, err := a.clicks.Of(c.account).LinkStats(c.ctx, link.ID)
	if err != nil {
		return withOutage(readingClicks, err)
	}
	return answer(c.http, fasthttp.StatusOK, linkStats{
		Success:     true,
		Hash:        link.Hash,
		ShortURL:    a.shortener.ShortURL(link),
		OriginalURL: link.URL,
		IsActive:    link.Redirects(),
		Stats:       newStats(counts),
	})
}

// newStats encodes missing counts as empty lists and objects, never as null.
func newStats(counts schema.Stats) stats {
	s := stats{
		TotalClicks: counts.TotalClicks, ClicksByDay: []dayClicks{}, Devices: counts.Devices, Browsers: counts.Browsers,
	}
	for _, day := range counts.ClicksByDay {
		s.ClicksByDay = append(s.ClicksByDay, dayClicks(day))
	}
	if s.Devices == nil {
		s.Devices = map[schema.Device]int64{}
	}
	if s.Browsers == nil {
		s.Browsers = map[string]int64{}
	}
	return s
}
