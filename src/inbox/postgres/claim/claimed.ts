/**
 * Selects the claimed events of a process, or of all of them, as `id`, `media` and `owner`.
 *
 * A claim writes no event: a process publishes in `claim` the ids of the events that it has, each with the number of times
 * that the event had been released by then. A release adds 1 to the number of the event. So what a process published no
 * longer counts, and neither does a record that it writes later.
 * @param where a condition on the rows of `claim`
 */
export const claimedEvents = (schema: string, where = 'true'): string => `
  SELECT held.id, held.media, claim.owner
  FROM ${schema}.claim CROSS JOIN unnest(claim.events, claim.releases) AS published (id, releases)
    CROSS JOIN LATERAL (
      SELECT id, media FROM ${schema}.event
      WHERE event.id = published.id AND event.releases = published.releases LIMIT 1
    ) held
  WHERE ${where}`

/** Releases an event. What its process records about it later is not written. */
export const released = 'releases = releases + 1'

/**
 * The condition that the process that claimed an event still has it. Only then it can record anything about it.
 * @param releases the number of the event's releases when it was claimed
 */
export const isHeldSince = (releases: string): string => `event.releases = ${releases}`
