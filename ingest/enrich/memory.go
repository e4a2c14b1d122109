package enrich

// memory remembers up to limit answers.
type memory[V any] struct {
	limit   int
	answers map[string]V
	ask     func(key string) V
}

func newMemory[V any](limit int, ask func(key string) V) *memory[V] {
	return &memory[V]{limit: limit, answers: make(map[string]V), ask: ask}
}

// get returns the answer to key, of which it keeps a copy.
func (m *memory[V]) get(key []byte) V {
	if v, ok := m.answers[string(key)]; ok {
		return v
	}
	if len(m.answers) >= m.limit {
		m.forget() // rare: a refill costs less than keeping an order of use for every click
	}
	k := string(key)
	v := m.ask(k)
	m.answers[k] = v
	return v
}

func (m *memory[V]) forget() { clear(m.answers) }
