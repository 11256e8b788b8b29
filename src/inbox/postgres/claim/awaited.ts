import type { HandlerName } from '../../inbox.ts'

// An event that only other processes can go on with awaits their handlers: `event.awaits` names them, and it is due when it
// becomes too old. A process adopts the events that await its handlers, a batch at a time: they are due from then on, for
// every process that has one of these handlers. So an event passes no process in vain, however long it waits.
//
// A name is stored as JSON, since Postgres stores no NUL.

/** Payload of the notification that events were released, or that handlers were removed. */
export const awaitedMark = 'awaited'

/** Events that are adopted at a time. They are due, and other processes' claims read them. */
export const adoptionSize = 1_000

/** What a process publishes of its handlers: the name, or of a handler of some types the name with each of them. */
export const publishedNames = (handlers: readonly HandlerName[]): string[] =>
  handlers.flatMap(({ name, types }) =>
    types === undefined ? [JSON.stringify(name)] : types.map((type) => JSON.stringify([name, type])),
  )

/** Reads a handler as a process has published it. */
export function toHandler(published: string): HandlerName {
  const parsed: string | readonly [name: string, type: string] = JSON.parse(published)
  return typeof parsed === 'string' ? { name: parsed } : { name: parsed[0], types: [parsed[1]] }
}

/**
 * What an event of a type awaits if it owes these handlers.
 * @param own what its process has published. It can't go on with the event itself, although it has these handlers: they leave
 * out test deliveries, for example
 */
export const awaitedNames = (handlers: readonly string[], type: string, own: readonly string[]): string[] =>
  handlers
    .map((name) => [JSON.stringify(name), JSON.stringify([name, type])])
    .filter((names) => !names.some((name) => own.includes(name)))
    .flat()

/** The handlers that a process has published. */
export const ownHandlers = (schema: string, owner: string): string =>
  `(SELECT handlers FROM ${schema}.owner WHERE owner.id = ${owner})`

/**
 * Adopts the events that await a handler of this process, or one that was removed, which any process can go on without. The
 * condition on `due_at` fits no index: Postgres would read all retries to find these events.
 */
export const adoptStatement = (schema: string, owner: string): string => `
  WITH names AS MATERIALIZED (
    SELECT ${ownHandlers(schema, owner)} AS own, ARRAY(SELECT name FROM ${schema}.removed_handler) AS removed
  )
  UPDATE ${schema}.event SET due_at = now(), delayed_at = now(),
    awaits = CASE WHEN awaits && (SELECT removed FROM names) THEN NULL ELSE awaits END
  WHERE id = ANY (ARRAY(
    SELECT id FROM ${schema}.event WHERE awaits && (SELECT own || removed FROM names) AND coalesce(due_at > now(), false)
    LIMIT ${adoptionSize} FOR UPDATE SKIP LOCKED
  )) RETURNING true AS adopted`
