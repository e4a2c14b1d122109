package dashboard

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
)

// fieldRow is the name of the buttons that add, remove and move rows of the behaviour's form. Their values are an
// action, a list and the number of a row, such as "up rules 2". The service answers with the page, so that the buttons
// work without the script.
const fieldRow = "row"

// Fields of the form about the password of a link.
const (
	fieldHasPassword = "has_password" // hidden
	fieldOpen        = "open"         // a check box that removes the password
)

// behaviour has the fields of a link's behaviour as text: a limit, a path mode, rows of rules and variants, and a card.
type behaviour struct {
	Rules, Variants []behaviourRow
	Card            []behaviourInput
	Limit           behaviourInput
	PathMode        choiceField
	// Password is a new password. It is not among behaviourFields, which outlast the session in the address of a page.
	Password    behaviourInput
	HasPassword bool   // the link has one
	Open        bool   // the password is to be removed
	Host        string // of the short link, which previews name
	Changed     bool   // rows of the form were, and nothing is saved yet
}

// behaviourRow is a rule or a variant.
type behaviourRow struct {
	Field  string // such as rules.0
	Title  string
	Inputs []behaviourInput
	At     string           // list and number, for the buttons
	More   []behaviourInput // conditions that can be added
	First  bool
	Last   bool
}

// behaviourInput is a field of a row, or of the card. Key is what the API calls it.
type behaviourInput struct {
	Key, Label, Type, Example, Text string
	Name                            string // of the field in the form, and in the API's errors
	Focus                           bool
	Prose                           bool // text in a language
	Optional                        bool
	Shown                           bool // a condition that the rule has, or that was added to it
}

// Words are what the field offers, Condition what they are for.
func (i behaviourInput) Words() []ruleWord { return wordsOf(i.Condition()) }

// Condition returns the API's name of the condition that the field is.
func (i behaviourInput) Condition() string { return strings.TrimPrefix(i.Key, "if.") }

// Has reports whether the field has a value.
func (i behaviourInput) Has(value string) bool {
	return slices.Contains(valuesOf(i.Condition(), i.Text), value)
}

// Flags returns the countries whose flags the field has.
func (i behaviourInput) Flags() (codes []string) {
	for _, code := range valuesOf(i.Condition(), i.Text) {
		if i.Key == "if.country" && len(code) == 2 {
			codes = append(codes, code)
		}
	}
	return codes
}

var (
	ruleInputs = []behaviourInput{
		{Key: "name", Label: "Name", Example: "phones", Optional: true},
		{Key: "url", Label: "Redirect to", Example: "https://m.example.com/"},
		{Key: "if.device", Label: "Devices", Example: "phones and tablets"},
		{Key: "if.country", Label: "Countries", Example: "Germany, Austria"},
		{Key: "if.language", Label: "Languages", Example: "German, French"},
		{Key: "if.os", Label: "Operating systems", Example: "Android, iOS"},
		{Key: "if.browser", Label: "Browsers", Example: "Firefox, Chrome"},
		{Key: "if.query", Label: "Query", Example: "ref=newsletter&id=*"},
		{Key: "if.from", Label: "From", Type: "datetime-local"},
		{Key: "if.until", Label: "Until", Type: "datetime-local"},
	}
	variantInputs = []behaviourInput{
		{Key: "name", Label: "Name", Example: "red", Optional: true},
		{Key: "url", Label: "Redirect to", Example: "https://example.com/red"},
		{Key: "weight", Label: "Percent of visitors", Example: "50"},
	}
	cardInputs = []behaviourInput{
		{Key: "title", Label: "Title", Prose: true}, {Key: "description", Label: "Description", Prose: true},
		{Key: "image", Label: "Image URL", Example: "https://example.com/image.png"},
	}
	// behaviourFields are the names of all fields of the form.
	behaviourFields = func() (names []string) {
		for i := range schema.MaxRules {
			names = append(names, namesOf(rowField(links.FieldRules, i), ruleInputs)...)
		}
		for i := range schema.MaxVariants {
			names = append(names, namesOf(rowField(links.FieldVariants, i), variantInputs)...)
		}
		return append(names, append(namesOf(links.FieldCard, cardInputs), links.FieldMaxClicks, links.FieldPathMode)...)
	}()
)

func rowField(list string, i int) string { return list + "." + strconv.Itoa(i) }

func namesOf(field string, inputs []behaviourInput) (names []string) {
	for _, input := range inputs {
		names = append(names, field+"."+input.Key)
	}
	return names
}

// typedBehaviour reads the fields with get and then does the action of fieldRow. Empty rows are left out.
func typedBehaviour(get func(field string) string) (b behaviour) {
	action, at, _ := strings.Cut(get(fieldRow), " ")
	read := func(list string, inputs []behaviourInput, most int) []behaviourRow {
		rows := make([]behaviourRow, most)
		for i := range rows {
			rows[i].Inputs = typedInputs(get, rowField(list, i), inputs)
		}
		asked, number, _ := strings.Cut(at, " ")
		if i, err := strconv.Atoi(number); asked == list && err == nil && i >= 0 && i < most {
			if action == "condition" {
				rows[i].show(get(rowField(list, i) + ".more"))
			}
			rows = moved(rows, action, i)
		}
		rows = slices.DeleteFunc(rows, behaviourRow.isEmpty)
		if asked == list && action == "add" {
			rows = added(rows, list, inputs, most)
		}
		return numbered(rows, list)
	}
	b.Rules = read(links.FieldRules, ruleInputs, schema.MaxRules)
	b.Variants = read(links.FieldVariants, variantInputs, schema.MaxVariants)
	b.Card = typedInputs(get, links.FieldCard, cardInputs)
	b.Limit = behaviourInput{Name: links.FieldMaxClicks, Label: "Click limit", Example: "any number",
		Text: cut(get(links.FieldMaxClicks), maxAsked)}
	b.PathMode = choiceField{links.FieldPathMode, "Paths behind the alias",
		"What becomes of /alias/more/text if no link has this name.", cut(get(links.FieldPathMode), maxAsked),
		append([]choiceOption{{"", "As the domain says"}}, pathModes...)}
	b.Password = behaviourInput{Name: links.FieldPassword, Label: "Password for visitors",
		Text: cut(get(links.FieldPassword), maxAsked)}
	b.Changed = action != ""
	b.HasPassword, b.Open = get(fieldHasPassword) == "true", get(fieldOpen) == "true"
	if b.HasPassword {
		b.Password.Label = "Password, kept if empty"
	}
	return b
}

func typedInputs(get func(field string) string, field string, inputs []behaviourInput) []behaviourInput {
	typed := slices.Clone(inputs)
	for i := range typed {
		typed[i].Name = field + "." + typed[i].Key
		typed[i].Text = cut(get(typed[i].Name), maxAsked)
	}
	return typed
}

// textOf returns all texts of inputs.
func textOf(inputs []behaviourInput) (text string) {
	for _, input := range inputs {
		text += input.Text
	}
	return text
}

// show adds a condition to a rule.
func (r behaviourRow) show(key string) {
	for i := range r.Inputs {
		if r.Inputs[i].Key == key {
			r.Inputs[i].Shown, r.Inputs[i].Focus = true, true
		}
	}
}

func (r behaviourRow) isEmpty() bool {
	return textOf(r.Inputs) == "" && !slices.ContainsFunc(r.Inputs, func(i behaviourInput) bool { return i.Shown })
}

// moved removes row i, or changes its place with a neighbour.
func moved(rows []behaviourRow, action string, i int) []behaviourRow {
	switch {
	case action == "remove":
		return slices.Delete(rows, i, i+1)
	case action == "up" && i > 0:
		rows[i-1], rows[i] = rows[i], rows[i-1]
	case action == "down" && i+1 < len(rows):
		rows[i+1], rows[i] = rows[i], rows[i+1]
	}
	return rows
}

// added adds an empty row where there is room. The first variants come in a pair of equal weights.
func added(rows []behaviourRow, list string, inputs []behaviourInput, most int) []behaviourRow {
	first := len(rows)
	for range max(1, map[string]int{links.FieldVariants: schema.MinVariants}[list]-len(rows)) {
		if len(rows) < most {
			rows = append(rows, behaviourRow{Inputs: slices.Clone(inputs)})
		}
	}
	if first == len(rows) {
		return rows
	}
	rows[first].Inputs[1].Focus = true
	if list == links.FieldVariants && first == 0 {
		for i := range rows {
			rows[i].Inputs[2].Text = strconv.Itoa(100 / schema.MinVariants)
		}
	}
	return rows
}

// numbered sets what depends on the place of a row.
func numbered(rows []behaviourRow, list string) []behaviourRow {
	title := map[string]string{links.FieldRules: "Rule", links.FieldVariants: "Variant"}[list]
	for i := range rows {
		r := &rows[i]
		r.Field, r.At, r.Title = rowField(list, i), fmt.Sprint(list, " ", i), fmt.Sprint(title, " ", i+1)
		r.First, r.Last = i == 0, i == len(rows)-1
		for j := range r.Inputs {
			r.Inputs[j].Name = r.Field + "." + r.Inputs[j].Key
		}
		if list == links.FieldRules {
			r.showConditions()
		}
	}
	return rows
}

// showConditions shows the conditions that a rule has. A rule without any begins with the usual ones.
func (r *behaviourRow) showConditions() {
	isNew := !slices.ContainsFunc(r.Inputs, func(i behaviourInput) bool {
		return strings.HasPrefix(i.Key, "if.") && i.Text != "" || i.Shown
	})
	for i := range r.Inputs {
		input := &r.Inputs[i]
		usual := isNew && (input.Key == "if.device" || input.Key == "if.country")
		input.Shown = input.Shown || input.Text != "" || usual || !strings.HasPrefix(input.Key, "if.")
		if !input.Shown {
			r.More = append(r.More, *input)
		}
	}
}

// behaviourOf returns the behaviour of a link as the form shows it in a time zone.
func behaviourOf(e *schema.Behaviour, zone *time.Location) behaviour {
	texts := map[string]string{}
	if e == nil {
		e = new(schema.Behaviour)
	}
	for i, rule := range e.Rules {
		c := rule.If
		for key, text := range map[string]string{"name": rule.Name, "url": rule.URL,
			"if.device": strings.Join(c.Device, ", "),
			"if.os":     strings.Join(c.OS, ", "), "if.browser": strings.Join(c.Browser, ", "),
			"if.language": namesOfValues("language", c.Language),
			"if.country":  namesOfValues("country", c.Country), "if.query": formatQuery(c.Query),
			"if.from":  formatMoment(c.From, zone),
			"if.until": formatMoment(c.Until, zone)} {
			texts[rowField(links.FieldRules, i)+"."+key] = text
		}
	}
	for i, v := range e.Variants {
		field := rowField(links.FieldVariants, i) + "."
		texts[field+"name"], texts[field+"url"], texts[field+"weight"] = v.Name, v.URL, strconv.Itoa(v.Weight)
	}
	if card := e.Card; card != nil {
		texts["card.title"], texts["card.description"] = card.Title, card.Description
		if card.Image != nil {
			texts["card.image"] = *card.Image
		}
	}
	if e.MaxClicks != 0 {
		texts[links.FieldMaxClicks] = strconv.FormatInt(e.MaxClicks, 10)
	}
	texts[links.FieldPathMode] = string(e.PathMode)
	if e.Password != 0 {
		texts[fieldHasPassword] = "true"
	}
	return typedBehaviour(func(field string) string { return texts[field] })
}

// formatMoment returns the time of a condition as text, in a zone; "" for no time.
func formatMoment(at schema.Moment, zone *time.Location) string {
	if at == 0 {
		return ""
	}
	return formatExpiry(time.Unix(int64(at), 0), zone)
}

// formatQuery writes the conditions as a query string that meets them.
func formatQuery(conditions map[string]string) string {
	query := url.Values{}
	for name, value := range conditions {
		query.Set(name, value)
	}
	return strings.ReplaceAll(query.Encode(), "%2A", "*")
}

// behaviour returns what the form asks for, in the form of the API. Its times are in a zone. Parts that are neither in
// the form nor in the link are left out.
func (b behaviour) extension(old *schema.Behaviour, zone *time.Location) (x links.Behaviour) {
	if old == nil {
		old = new(schema.Behaviour)
	}
	var rules, variants []any
	for _, row := range b.named(b.Rules, "rule") {
		rules = append(rules, ruleObject(row.Inputs, zone))
	}
	for _, row := range b.named(b.Variants, "variant") {
		v := row.Inputs
		var weight any = v[2].Text
		if n, err := strconv.Atoi(v[2].Text); err == nil {
			weight = n
		}
		variants = append(variants, map[string]any{"name": v[0].Text, "url": withScheme(v[1].Text), "weight": weight})
	}
	if len(rules)+len(old.Rules) > 0 {
		x.Rules = jsonText(rules)
	}
	if len(variants)+len(old.Variants) > 0 {
		x.Variants = jsonText(variants)
	}
	switch image := withScheme(b.Card[2].Text); {
	case textOf(b.Card) != "":
		card := map[string]any{"title": b.Card[0].Text, "description": b.Card[1].Text}
		if image != "" {
			card["image"] = image
		}
		x.Card = jsonText(card)
	case old.Card != nil:
		x.Card = "null"
	}
	switch most, err := strconv.ParseInt(strings.TrimSpace(b.Limit.Text), 10, 64); {
	case err == nil:
		x.MaxClicks = jsonText(most)
	case b.Limit.Text != "":
		x.MaxClicks = jsonText(b.Limit.Text) // which the API's rules refuse
	case old.MaxClicks != 0:
		x.MaxClicks = "null"
	}
	switch {
	case b.PathMode.Text != "":
		x.PathMode = jsonText(b.PathMode.Text)
	case old.PathMode != schema.PathDefault:
		x.PathMode = "null"
	}
	switch {
	case b.Open && old.Password != 0:
		x.Password = "null"
	case b.Password.Text != "":
		x.Password = jsonText(b.Password.Text)
	}
	return x
}

// ruleObject returns a rule in the form of the API. Text that cannot be read is passed on, so that the API's rules say
// what is wrong.
func ruleObject(inputs []behaviourInput, zone *time.Location) map[string]any {
	rule, conditions := map[string]any{}, map[string]any{}
	for _, input := range inputs {
		condition, is := strings.CutPrefix(input.Key, "if.")
		switch {
		case input.Key == "url":
			rule["url"] = withScheme(input.Text)
		case !is:
			rule[input.Key] = input.Text
		case input.Text != "":
			conditions[condition] = conditionValue(condition, input.Text, zone)
		}
	}
	rule["if"] = conditions
	return rule
}

func conditionValue(condition, text string, zone *time.Location) any {
	switch condition {
	case "from", "until":
		if at, err := parseExpiry(text, zone); err == nil {
			return at
		}
		return text
	case "query":
		query, err := url.ParseQuery(text)
		values := map[string]string{}
		for name, all := range query {
			if values[name] = all[0]; len(all) > 1 {
				return text
			}
		}
		if err != nil {
			return text
		}
		return values
	}
	return valuesOf(condition, text)
}

// named returns the rows, and gives names to rows without one: people need none for most.
func (b behaviour) named(rows []behaviourRow, word string) []behaviourRow {
	taken := func(name string) bool {
		return slices.ContainsFunc(slices.Concat(b.Rules, b.Variants),
			func(r behaviourRow) bool { return r.Inputs[0].Text == name })
	}
	rows = slices.Clone(rows)
	next := 0
	for i := range rows {
		if rows[i].Inputs[0].Text != "" {
			continue
		}
		rows[i].Inputs = slices.Clone(rows[i].Inputs)
		for next++; taken(fmt.Sprint(word, "-", next)); next++ {
		}
		rows[i].Inputs[0].Text = fmt.Sprint(word, "-", next)
	}
	return rows
}

func jsonText(value any) string {
	text, _ := json.Marshal(value) // strings, numbers and times of four-digit years can be encoded
	return string(text)
}

// IsEmpty reports whether the form has nothing but empty fields.
func (b behaviour) IsEmpty() bool {
	return len(b.Rules)+len(b.Variants) == 0 && !b.HasPassword &&
		textOf(b.Card)+b.Limit.Text+b.PathMode.Text+b.Password.Text == ""
}

// Shares returns the variants with their shares of the visitors, for a bar.
func (b behaviour) Shares() (shares []behaviourShare) {
	x := 0
	for i, row := range b.Variants {
		weight, err := strconv.Atoi(row.Inputs[2].Text)
		if err != nil || weight < 0 || weight > 100 {
			weight = 0
		}
		shares = append(shares, behaviourShare{Name: row.Inputs[0].Text, Class: fmt.Sprint("share-", i),
			X: percent(float64(x)), Width: percent(float64(weight))})
		x += weight
	}
	return shares
}

// behaviourShare is a part of the bar, in SVG lengths.
type behaviourShare struct{ Name, Class, X, Width string }

// Sum says what the percentages of the variants add up to.
func (b behaviour) Sum() string {
	var parts []string
	sum := 0
	for _, row := range b.Variants {
		weight, _ := strconv.Atoi(row.Inputs[2].Text)
		parts = append(parts, strconv.Itoa(weight))
		sum += weight
	}
	return fmt.Sprintf("%s = %d %%", strings.Join(parts, " + "), sum)
}

// Lists are what fields of rules offer while somebody types.
func (b behaviour) Lists() (lists map[string][]ruleWord) {
	lists = map[string][]ruleWord{}
	for _, row := range b.Rules {
		for _, input := range row.Inputs {
			if input.Shown && input.Key != "if.device" && input.Words() != nil {
				lists[input.Condition()] = input.Words()
			}
		}
	}
	return lists
}
