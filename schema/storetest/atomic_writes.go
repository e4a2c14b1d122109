package storetest

import (
	"context"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// writings are the methods that change rows, with the ways of each that have statements of their own.
var writings = []writing{
	{"CreateFirstAccount", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			account, token := newAccount(f.name), newToken(0, f.name)
			return s.CreateFirstAccount(ctx, &account, &token)
		}
	}},
	{"CreateAccount", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			account := newAccount(f.name)
			return s.CreateAccount(ctx, &account)
		}
	}},
	{"SetSuspended", "", func(f fixture) call {
		f.link("one")
		return func(ctx context.Context, s schema.Database) error { return s.SetSuspended(ctx, f.owner.ID, true) }
	}},
	{"SetProfile", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			return s.SetProfile(ctx, f.owner.ID, schema.Profile{TimeZone: "Europe/Vienna"})
		}
	}},
	{"SetPassword", "", func(f fixture) call {
		addSession(f.t, f.store, f.owner, f.name)
		return func(ctx context.Context, s schema.Database) error { return s.SetPassword(ctx, f.owner.ID, "new", 0) }
	}},
	{"CreateToken", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			token := newToken(f.owner.ID, f.name)
			return s.CreateToken(ctx, &token)
		}
	}},
	{"RevokeToken", "", func(f fixture) call {
		token := addToken(f.t, f.store, f.owner.ID, f.name)
		return func(ctx context.Context, s schema.Database) error {
			return s.RevokeToken(ctx, token.ID, hour(1), false)
		}
	}},
	{"UseTokens", "", func(f fixture) call {
		one, two := addToken(f.t, f.store, f.owner.ID, f.name), addToken(f.t, f.store, f.owner.ID, f.name+"2")
		return func(ctx context.Context, s schema.Database) error {
			return s.UseTokens(ctx, map[int64]time.Time{one.ID: hour(1), two.ID: hour(2)})
		}
	}},
	{"CreateSession", "in the place of an expired one", func(f fixture) call {
		addSession(f.t, f.store, f.owner, f.name)
		return func(ctx context.Context, s schema.Database) error {
			session := newSession(f.owner.ID, f.name+"2")
			session.CreatedAt = hour(2)
			return s.CreateSession(ctx, &session, f.owner.PasswordHash)
		}
	}},
	{"ExtendSession", "", func(f fixture) call {
		session := addSession(f.t, f.store, f.owner, f.name)
		return func(ctx context.Context, s schema.Database) error {
			return s.ExtendSession(ctx, session.ID, hour(1), hour(2))
		}
	}},
	{"EndSession", "", func(f fixture) call {
		session := addSession(f.t, f.store, f.owner, f.name)
		return func(ctx context.Context, s schema.Database) error { return s.EndSession(ctx, f.owner.ID, session.ID) }
	}},
	{"CreateShare", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			share := newShare(f.owner.ID, f.name)
			return s.CreateShare(ctx, &share)
		}
	}},
	{"DeleteShare", "", func(f fixture) call {
		share := addShare(f.t, f.store, f.owner.ID, f.name, nil)
		return func(ctx context.Context, s schema.Database) error { return s.DeleteShare(ctx, f.owner.ID, share.ID) }
	}},
	{"SharedValue", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.SharedValue(ctx, f.name, []byte("first"))
			return err
		}
	}},
	{"SetSharedValue", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			return s.SetSharedValue(ctx, f.name, []byte("new"))
		}
	}},
	{"DeleteSharedValues", "", func(f fixture) call {
		testkit.Must(f.t, f.store.SetSharedValue(f.t.Context(), f.name, []byte("old")))
		return func(ctx context.Context, s schema.Database) error {
			return s.DeleteSharedValues(ctx, f.name, f.name+"z")
		}
	}},
	{"CountAttempts", "of two keys, with an old row", func(f fixture) call {
		_, err := countOne(f.t, f.store, [32]byte{1}, window(0))
		testkit.Must(f.t, err)
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.CountAttempts(ctx, []schema.Attempts{{Key: [32]byte{1}, Window: window(120), N: 1},
				{Key: [32]byte{2}, Window: window(120), N: 1}})
			return err
		}
	}},
	{"LeaseRequests", "", func(f fixture) call {
		token := addToken(f.t, f.store, f.owner.ID, f.name)
		return func(ctx context.Context, s schema.Database) error {
			_, _, err := s.LeaseRequests(ctx, token.ID, window(1), rateLimit)
			return err
		}
	}},
	{"PutCertificateFile", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			return s.PutCertificateFile(ctx, f.name, []byte("content"))
		}
	}},
	{"DeleteCertificateFiles", "", func(f fixture) call {
		testkit.Must(f.t, f.store.PutCertificateFile(f.t.Context(), f.name+"/file", []byte("old")))
		return func(ctx context.Context, s schema.Database) error { return s.DeleteCertificateFiles(ctx, f.name) }
	}},
	{"LockCertificate", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.LockCertificate(ctx, f.name, "holder", longLease)
			return err
		}
	}},
	{"UnlockCertificate", "", func(f fixture) call {
		_, err := f.store.LockCertificate(f.t.Context(), f.name, "holder", longLease)
		testkit.Must(f.t, err)
		return func(ctx context.Context, s schema.Database) error { return s.UnlockCertificate(ctx, f.name, "holder") }
	}},
	{"NoteCertificate", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			return s.NoteCertificate(ctx, schema.CertificateState{Host: f.host(), AttemptedAt: epoch})
		}
	}},
	{"PutImport", "in the place of an old one", func(f fixture) call {
		old := schema.ImportStatus{AccountID: f.owner.ID, ID: "old", Status: "{}", UpdatedAt: hour(1)}
		testkit.Must(f.t, f.store.PutImport(f.t.Context(), old, hour(0)))
		other := addAccount(f.t, f.store, f.name+"other@example.org")
		next := schema.ImportStatus{AccountID: other.ID, ID: "next", Status: "{}", UpdatedAt: hour(3)}
		return func(ctx context.Context, s schema.Database) error { return s.PutImport(ctx, next, hour(2)) }
	}},
	{"UpdateImport", "", func(f fixture) call {
		i := schema.ImportStatus{AccountID: f.owner.ID, ID: f.name, Status: "{}", UpdatedAt: hour(1)}
		testkit.Must(f.t, f.store.PutImport(f.t.Context(), i, hour(0)))
		i.Status = "[]"
		return func(ctx context.Context, s schema.Database) error { return s.UpdateImport(ctx, i) }
	}},
	{"RequestImport", "", func(f fixture) call {
		i := schema.ImportStatus{AccountID: f.owner.ID, ID: f.name, Status: "{}", UpdatedAt: hour(1)}
		testkit.Must(f.t, f.store.PutImport(f.t.Context(), i, hour(0)))
		return func(ctx context.Context, s schema.Database) error {
			return s.RequestImport(ctx, f.owner.ID, f.name, hour(1))
		}
	}},

	{"CreateDomain", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			domain := newDomain(f.owner.ID, f.host())
			return s.CreateDomain(ctx, &domain)
		}
	}},
	{"VerifyDomain", "", func(f fixture) call {
		domain := addDomain(f.t, f.store, f.owner.ID, f.host(), false)
		return func(ctx context.Context, s schema.Database) error { return s.VerifyDomain(ctx, domain.ID, hour(1)) }
	}},
	{"SetSite", "", func(f fixture) call {
		domain := addDomain(f.t, f.store, f.owner.ID, f.host(), true)
		return func(ctx context.Context, s schema.Database) error {
			return s.SetSite(ctx, domain.ID, schema.Site{RootURL: "https://example.org/"}, schema.AppLinks{Apple: "{}"})
		}
	}},
	{"DomainsToCheck", "", func(f fixture) call {
		checkedDomain(f.t, f.store, f.owner.ID, f.host(), hour(1))
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.DomainsToCheck(ctx, hour(2), hour(3), 10)
			return err
		}
	}},
	{"NoteDomainCheck", "", func(f fixture) call {
		domain := checkedDomain(f.t, f.store, f.owner.ID, f.host(), hour(1))
		return func(ctx context.Context, s schema.Database) error {
			return s.NoteDomainCheck(ctx, domain.ID, hour(1), hour(2))
		}
	}},
	{"ContestDomain", "", func(f fixture) call {
		domain := failingDomain(f.t, f.store, f.owner.ID, f.host())
		return func(ctx context.Context, s schema.Database) error {
			return s.ContestDomain(ctx, domain.ID, domain.ID+1, hour(2))
		}
	}},
	{"TransferDomain", "", func(f fixture) call {
		failingDomain(f.t, f.store, f.owner.ID, f.host())
		other := addAccount(f.t, f.store, f.name+"other@example.org")
		claimed := addDomain(f.t, f.store, other.ID, f.host(), false)
		return func(ctx context.Context, s schema.Database) error {
			return s.TransferDomain(ctx, claimed.ID, hour(2), hour(3))
		}
	}},
	{"ReleaseDomain", "", func(f fixture) call {
		domain := failingDomain(f.t, f.store, f.owner.ID, f.host())
		return func(ctx context.Context, s schema.Database) error { return s.ReleaseDomain(ctx, domain.ID, hour(2)) }
	}},
	{"DeleteDomain", "", func(f fixture) call {
		domain := addDomain(f.t, f.store, f.owner.ID, f.host(), true)
		return func(ctx context.Context, s schema.Database) error { return s.DeleteDomain(ctx, domain.ID) }
	}},

	{"CreateLink", "", func(f fixture) call {
		addWebhook(f.t, f.store, f.owner.ID, nil)
		return func(ctx context.Context, s schema.Database) error {
			link := newLink(f.owner.ID, 0, f.name)
			return s.CreateLink(ctx, &link)
		}
	}},
	{"CreateLinks", "with drawn hashes", func(f fixture) call {
		return f.batch(func(b *schema.LinkBatch) { b.Call, b.Answer = nil, nil }, "", "")
	}},
	{"CreateLinks", "with chosen hashes", func(f fixture) call {
		return f.batch(func(b *schema.LinkBatch) { b.Call, b.Answer = nil, nil }, "one", "two", "")
	}},
	{"CreateLinks", "recorded, with a link that is made anew", func(f fixture) call {
		f.deleted("two")
		return f.batch(func(*schema.LinkBatch) {}, "one", "two", "")
	}},
	{"CreateLinks", "with external IDs, one of a link that cannot be restored", func(f fixture) call {
		gone := withExternalID(newLink(f.owner.ID, 0, f.name+"-gone"), f.name+"-1")
		testkit.Must(f.t, f.store.CreateLink(f.t.Context(), &gone))
		testkit.Must(f.t, f.store.DeleteLink(f.t.Context(), gone, epoch.Add(-schema.TrashTTL)))
		return f.batch(func(b *schema.LinkBatch) {
			b.Call, b.Answer = nil, nil
			for i := range b.Links {
				b.Links[i].ExternalID = f.name + "-" + string(rune('0'+i))
			}
		}, "one", "two", "")
	}},
	{"CreateLinks", "for one of which another stands", func(f fixture) call {
		link := f.link("one")
		return f.batch(func(b *schema.LinkBatch) {
			b.Links[0].URL, b.Reuse = link.URL, []func(schema.Link) bool{anyLink, nil}
		}, "", "two")
	}},
	{"NoteTargets", "", func(f fixture) call {
		f.link("one")
		f.deleted("two")
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.NoteTargets(ctx, f.owner.ID, 10)
			return err
		}
	}},
	{"UpdateLink", "", func(f fixture) call {
		addWebhook(f.t, f.store, f.owner.ID, nil)
		link := f.link("one")
		return func(ctx context.Context, s schema.Database) error {
			edited := link
			return s.UpdateLink(ctx, &edited, schema.LinkEdit{Title: new("new")}, hour(1))
		}
	}},
	{"UpdateLink", "with other names, one of a deleted link", func(f fixture) call {
		link := f.link("one")
		addWebhook(f.t, f.store, f.owner.ID, func(h *schema.Webhook) { h.Hash = link.Hash })
		addShare(f.t, f.store, f.owner.ID, f.name, func(s *schema.Share) {
			s.LinkID, s.Hash, s.DomainID = link.ID, link.Hash, new(int64)
		})
		former, gone := link.Hash, f.link("two")
		rename(f.t, f.store, &gone, gone.Hash+"-now")
		testkit.Must(f.t, f.store.DeleteLink(f.t.Context(), gone, hour(1)))
		rename(f.t, f.store, &link, former+"-now")
		return func(ctx context.Context, s schema.Database) error {
			edited := link
			return s.UpdateLink(ctx, &edited, schema.LinkEdit{Names: &schema.LinkNames{Hash: gone.Hash,
				Former: []string{link.Hash}}}, hour(2))
		}
	}},
	{"NumberChanges", "", func(f fixture) call {
		f.deleted("gone")
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.NumberChanges(ctx, f.owner.ID, 10)
			return err
		}
	}},
	{"NumberChanges", "of a domain", func(f fixture) call {
		domain := addDomain(f.t, f.store, f.owner.ID, f.host(), true)
		addLink(f.t, f.store, f.owner.ID, domain.ID, f.name)
		testkit.Must(f.t, f.store.ReleaseDomain(f.t.Context(), domain.ID, hour(1)))
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.NumberChanges(ctx, f.owner.ID, 10)
			return err
		}
	}},
	{"RenameTag", "", func(f fixture) call {
		addTagged(f.t, f.store, f.owner.ID, f.name, "a b")
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.RenameTag(ctx, f.owner.ID, "a", "c", hour(1))
			return err
		}
	}},
	{"DeleteLink", "", func(f fixture) call {
		addWebhook(f.t, f.store, f.owner.ID, nil)
		link := f.link("one")
		return func(ctx context.Context, s schema.Database) error { return s.DeleteLink(ctx, link, hour(1)) }
	}},
	{"DeleteUnchanged", "", func(f fixture) call {
		addWebhook(f.t, f.store, f.owner.ID, nil)
		link := f.link("one")
		return func(ctx context.Context, s schema.Database) error { return s.DeleteUnchanged(ctx, link, hour(1)) }
	}},
	{"ChangeLinks", "to delete them", func(f fixture) call {
		return f.changes(func(c *schema.LinkChanges) { c.Edit, c.Call = nil, nil }, f.link("one"), f.link("two"))
	}},
	{"ChangeLinks", "to edit them, recorded", func(f fixture) call {
		return f.changes(func(*schema.LinkChanges) {}, f.link("one"), f.link("two"))
	}},
	{"RestoreLink", "", func(f fixture) call {
		link := f.deleted("one")
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.RestoreLink(ctx, f.owner.ID, link.Hash, nil, hour(0), hour(2))
			return err
		}
	}},
	{"RestoreAs", "", func(f fixture) call {
		addWebhook(f.t, f.store, f.owner.ID, nil)
		deleted, err := schema.FindLink(f.t.Context(), f.store, 0, f.deleted("one").Hash)
		testkit.Must(f.t, err)
		return func(ctx context.Context, s schema.Database) error {
			restored := deleted
			return s.RestoreAs(ctx, &restored, schema.LinkEdit{Title: new("new")}, hour(0), hour(2))
		}
	}},
	{"RestoreLinks", "", func(f fixture) call {
		ids := []int64{f.deleted("one").ID, f.deleted("two").ID}
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.RestoreLinks(ctx, f.owner.ID, ids, hour(0), hour(2))
			return err
		}
	}},
	{"PurgeLinks", "", func(f fixture) call {
		f.deleted("one")
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.PurgeLinks(ctx, hour(2), 10)
			return err
		}
	}},
	{"SetTakenDown", "", func(f fixture) call {
		link := f.link("one")
		return func(ctx context.Context, s schema.Database) error { return s.SetTakenDown(ctx, 0, link.Hash, true) }
	}},
	{"TakeChanges", "", func(f fixture) call {
		testkit.Must(f.t, f.store.SetTakenDown(f.t.Context(), 0, f.link("one").Hash, true))
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.TakeChanges(ctx, 0, func([]schema.Change) error { return nil })
			return err
		}
	}},

	{"AddLeaseHolder", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			return s.AddLeaseHolder(ctx, schema.Incarnation{15: 1})
		}
	}},
	{"TakeLease", "", func(f fixture) call {
		holder, link := f.holder()
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.TakeLease(ctx, holder, schema.LimitLease{LinkID: link.ID, Call: 2, Granted: 1, Spent: 1})
			return err
		}
	}},
	{"StateLeases", "", func(f fixture) call {
		holder, link := f.holder()
		other := addLimitedLink(f.t, f.store, f.owner.ID, f.name+"other", 100)
		_, err := f.store.TakeLease(f.t.Context(), holder, schema.LimitLease{LinkID: other.ID, Call: 1, Granted: -1})
		testkit.Must(f.t, err)
		return func(ctx context.Context, s schema.Database) error {
			return s.StateLeases(ctx, holder, []schema.LimitLease{{LinkID: link.ID, Call: 2, Spent: 1},
				{LinkID: other.ID, Call: 3, Spent: 1}})
		}
	}},
	{"EndLeases", "", func(f fixture) call {
		holder, link := f.holder()
		return func(ctx context.Context, s schema.Database) error {
			return s.EndLeases(ctx, holder, map[int64]int64{link.ID: 1})
		}
	}},

	{"CreateWebhook", "", func(f fixture) call {
		return func(ctx context.Context, s schema.Database) error {
			return s.CreateWebhook(ctx, &schema.Webhook{AccountID: f.owner.ID, Events: allEvents, CreatedAt: epoch})
		}
	}},
	{"UpdateWebhook", "to switch it off", func(f fixture) call {
		hook := f.tested(true)
		hook.Active = false
		return func(ctx context.Context, s schema.Database) error { return s.UpdateWebhook(ctx, &hook) }
	}},
	{"RotateSecret", "", func(f fixture) call {
		hook := f.tested(false)
		return func(ctx context.Context, s schema.Database) error {
			return s.RotateSecret(ctx, f.owner.ID, hook.ID, "new", hour(1))
		}
	}},
	{"DeleteWebhook", "", func(f fixture) call {
		hook := f.tested(true)
		return func(ctx context.Context, s schema.Database) error { return s.DeleteWebhook(ctx, f.owner.ID, hook.ID) }
	}},
	{"TestWebhook", "", func(f fixture) call {
		hook := f.tested(false)
		return func(ctx context.Context, s schema.Database) error { return s.TestWebhook(ctx, f.owner.ID, hook.ID) }
	}},
	{"ClaimWebhooks", "", func(f fixture) call {
		f.tested(false)
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.ClaimWebhooks(ctx, f.name, longLease, 10)
			return err
		}
	}},
	{"WaitingDeliveries", "with clicks", func(f fixture) call {
		hook := f.tested(true)
		return func(ctx context.Context, s schema.Database) error {
			_, err := s.WaitingDeliveries(ctx, hook.AccountID, hook.ID, 10)
			return err
		}
	}},
	{"NoteDelivery", "that succeeded", func(f fixture) call {
		hook := f.tested(true)
		return f.note(hook, schema.DeliveryNote{Delivered: true})
	}},
	{"NoteDelivery", "that switches the webhook off", func(f fixture) call {
		hook := f.tested(true)
		return f.note(hook, schema.DeliveryNote{Error: "answered 410", Off: schema.OffGone})
	}},
	{"ResendDelivery", "", func(f fixture) call {
		hook := f.tested(false)
		d := f.delivery(hook)
		_, err := f.store.NoteDelivery(f.t.Context(), hook.AccountID, hook.ID,
			f.name, d, schema.DeliveryNote{Delivered: true})
		testkit.Must(f.t, err)
		return func(ctx context.Context, s schema.Database) error {
			return s.ResendDelivery(ctx, hook.AccountID, hook.ID, d.Message)
		}
	}},
	{"ReleaseWebhook", "", func(f fixture) call {
		hook := f.tested(false)
		f.delivery(hook)
		return func(ctx context.Context, s schema.Database) error { return s.ReleaseWebhook(ctx, hook.ID, f.name) }
	}},
	{"QueueClicks", "", func(f fixture) call {
		f.tested(false)
		batch := f.clicks(f.link("one"))
		return func(ctx context.Context, s schema.Database) error { return s.QueueClicks(ctx, batch) }
	}},
}

// note is a call of NoteDelivery with the first delivery of a webhook.
func (f fixture) note(hook schema.Webhook, note schema.DeliveryNote) call {
	delivery := f.delivery(hook)
	return func(ctx context.Context, s schema.Database) error {
		_, err := s.NoteDelivery(ctx, hook.AccountID, hook.ID, f.name, delivery, note)
		return err
	}
}
