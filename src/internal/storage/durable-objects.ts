import { WebhookError, type WebhookErrorCode } from '../../errors.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import { within } from '../timers.ts'
import { outage } from './outage.ts'

// Structural types, so the published ones don't need Cloudflare's.

/** A binding to a class of Durable Objects. A `DurableObjectNamespace` fits. */
export interface ObjectNamespace {
  idFromName(name: string): object
  get(id: object): { fetch(url: string, init: ObjectRequest): Promise<{ json(): Promise<unknown> }> }
}

/** @throws WebhookError `invalid_option`, suggesting `example` as the binding to pass */
export function checkNamespace(owner: string, namespace: ObjectNamespace, example: string): void {
  if (typeof namespace?.idFromName === 'function' && typeof namespace.get === 'function') return
  const fix = `give the binding, such as ${example}, and declare it in durable_objects of the configuration`
  throw new WebhookError('invalid_option', `${owner}: namespace is not a binding to Durable Objects; ${fix}`)
}

interface ObjectRequest {
  readonly method: string
  readonly body: string
}

/** The state of a Durable Object. A `DurableObjectState` fits. */
export interface ObjectState {
  readonly storage: ObjectStorage
}

/** The storage of a Durable Object: the members used here. */
export interface ObjectStorage {
  readonly sql: ObjectSql
  transactionSync<T>(run: () => T): T
  setAlarm(at: number): Promise<void>
  deleteAlarm(): Promise<void>
}

/** The SQLite of a Durable Object. A `SqlStorage` fits. */
export interface ObjectSql {
  exec(query: string, ...bindings: unknown[]): { toArray(): Record<string, unknown>[] }
}

/** An object's steps, by name. Arguments and results are sent as JSON. */
export type ObjectSteps = Readonly<Record<string, (input: never) => MaybePromise<unknown>>>

type ObjectAnswer = {
  readonly result?: unknown
  readonly error?: { readonly code: WebhookErrorCode; readonly message: string }
}

export interface Question {
  readonly name: string
  readonly step: string
  readonly input: unknown
  /** `true` if the step is idempotent: it is then retried when an answer is lost. */
  readonly canRepeat: boolean
}

/** Maximum delay before a retry (ms). The first is a tenth of it. */
const maxDelayMs = 250

/**
 * Runs a step in an object. By `fetch`, not RPC: works with every compatibility date, and the object's class need not
 * extend a runtime class, which only a Worker can import.
 * @throws WebhookError the object's; `overloaded`, or `unavailable` if there is no answer within `timeoutMs`
 */
export async function askObject(namespace: ObjectNamespace, question: Question, timeoutMs: number): Promise<unknown> {
  const endsAt = performance.now() + timeoutMs
  for (let delayMs = maxDelayMs / 10; ; delayMs = Math.min(2 * delayMs, maxDelayMs)) {
    try {
      return await askOnce(namespace, question, Math.max(1, endsAt - performance.now()))
    } catch (error) {
      if (error instanceof WebhookError) throw error
      // The platform asks callers not to retry an overloaded object at once.
      if ((error as { overloaded?: boolean }).overloaded === true)
        throw new WebhookError('overloaded', 'the Durable Object is overloaded', { cause: error })
      if (!question.canRepeat || performance.now() + delayMs >= endsAt) throw outage('the Durable Object', error)
    }
    await new Promise((resolve) => setTimeout(resolve, delayMs * (0.5 + Math.random() / 2)))
  }
}

async function askOnce(namespace: ObjectNamespace, { name, step, input }: Question, timeoutMs: number) {
  // A new stub for each try: one that has failed keeps failing.
  const stub = namespace.get(namespace.idFromName(name))
  const fetching = stub.fetch('https://media-webhooks/', { method: 'POST', body: JSON.stringify({ step, input }) })
  const answer = fetching.then((response) => response.json() as Promise<ObjectAnswer>)
  const { result, error } = await within(timeoutMs, answer, () => {
    throw new Error(`no answer within ${Math.round(timeoutMs)} ms`)
  })
  if (error !== undefined) throw new WebhookError(error.code, error.message)
  return result
}

/** Runs the step that {@link askObject} asks for. An error thrown by `stepsOf` is sent to the caller. */
export async function answerAsObject(
  request: { json(): Promise<unknown> },
  getSteps: () => ObjectSteps,
): Promise<Response> {
  try {
    const { step, input } = (await request.json()) as Pick<Question, 'step' | 'input'>
    const steps = getSteps()
    const run = Object.hasOwn(steps, step) ? steps[step] : undefined
    // During a deployment, the Worker and the object may run different versions.
    if (run === undefined)
      throw new WebhookError('unavailable', `this version of the Durable Object has no step ${step}`)
    return Response.json({ result: await run(input as never) })
  } catch (error) {
    const { code, message } = error instanceof WebhookError ? error : new WebhookError('unavailable', String(error))
    return Response.json({ error: { code, message } })
  }
}

/** Default number of objects. */
export const defaultShards = 16

/** Maps a string to a shard. The result changes if `shards` does. */
export function shardOf(text: string, shards: number): number {
  // FNV-1a: short, and spreads texts that differ in one character.
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0) % shards
}
