/**
 * Selects claimed events as `id`, `media` and `owner`. A claim doesn't write its events: a process publishes their ids
 * in `claim`, each with the event's `releases`. A release increments that number, and so fences off the old owner: its
 * claim and late records no longer count. `where` filters the rows of `claim`.
 */
export const claimedEvents = (schema: string, where = 'true'): string => `
  SELECT held.id, held.media, claim.owner
  FROM ${schema}.claim CROSS JOIN unnest(claim.events, claim.releases) AS published (id, releases)
    CROSS JOIN LATERAL (
      SELECT id, media FROM ${schema}.event
      WHERE event.id = published.id AND event.releases = published.releases LIMIT 1
    ) held
  WHERE ${where}`

/** Releases an event, and fences off what its process records later. */
export const released = 'releases = releases + 1'

/** The fence: true while the claimant still holds the event. `releases`: the event's number when it was claimed. */
export const isHeldSince = (releases: string): string => `event.releases = ${releases}`
