import { type Acknowledgement, createReceiver, type MaybePromise, type Receiver } from '../../src/index.ts'
import { checkReceiver } from './check-receiver.ts'
import { checkPlatform, type Platform } from './platform.ts'

/** The part of a receiver that adapters call. */
export type Receives = Pick<Receiver, 'receive'>

/**
 * A receiver, or a function that makes it at the first delivery from what the platform passes with a request.
 * @typeParam Context the parameters of the function
 */
export type ReceiverSource<Context extends readonly unknown[]> =
  | Receives
  | ((...context: Context) => MaybePromise<Receives>)

/** The receiver of a mount. It is made at the first delivery if the mount was given a function, and made once. */
export class MountedReceiver<Context extends readonly unknown[]> {
  /** The receiver, once it was made and fits the platform. */
  ready: Receives | undefined
  readonly #adapter: string
  readonly #platform: Platform | undefined
  readonly #make: (...context: Context) => MaybePromise<Receives>
  #made: Receives | undefined
  #making: Promise<Receives> | undefined

  /**
   * @param platform the platform of an adapter that has one. A receiver is checked against it immediately then
   * @throws WebhookError `invalid_option` when `source` is neither a receiver nor a function that makes one, or is a
   * receiver that does not fit the platform
   */
  constructor(adapter: string, source: ReceiverSource<Context>, platform?: Platform) {
    this.#adapter = adapter
    this.#platform = platform
    const isMaker = typeof source === 'function' && (source as unknown) !== createReceiver
    if (!isMaker) checkReceiver(adapter, source as Receives | undefined)
    this.#make = isMaker ? source : () => source as Receives
    if (!isMaker && platform !== undefined) this.#use(source as Receives, false)
  }

  /**
   * Makes the receiver, and checks that it fits the platform. A failure is logged, and the next delivery tries again.
   * @param waits whether the platform is asked to wait for the handlers after the answer
   */
  async get(context: Context, waits: boolean): Promise<Receives | undefined> {
    try {
      const made = this.#made ?? (await (this.#making ?? this.#makeOnce(context)))
      // Another delivery may have checked it meanwhile.
      if (this.ready !== undefined) return this.ready
      return this.#use(made, waits)
    } catch (err) {
      // There is no receiver, and so no logger of the user's.
      console.error(`media-webhooks: ${this.#adapter} has no receiver, and answers 500:`, err)
      return undefined
    }
  }

  /** Checks that the receiver fits the platform. A check that fails is repeated: another request may have `waitUntil`. */
  #use(made: Receives, waits: boolean): Receives {
    const platform = this.#platform ?? currentPlatform()
    // Part of a receiver has nothing to check.
    if (platform !== undefined && 'setup' in made) {
      checkPlatform(this.#adapter, platform, made as Receiver, { waitUntil: waits })
    }
    this.ready = made
    return made
  }

  /** Starts to make it. The deliveries of one moment wait for the same promise. */
  #makeOnce(context: Context): Promise<Receives> {
    const making = this.#checked(context).finally(() => {
      this.#making = undefined
    })
    // On Workers a promise ends with its request, so no other request may wait for it.
    if (!onWorkers) this.#making = making
    return making
  }

  async #checked(context: Context): Promise<Receives> {
    const made = await this.#make(...context)
    checkReceiver(this.#adapter, made)
    this.#made ??= made
    return this.#made
  }
}

/** The answer to a delivery for which no receiver could be made. */
export const noReceiver: Pick<Acknowledgement, 'status' | 'headers' | 'body'> = {
  status: 500,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ status: 'error', code: 'internal', message: 'the receiver failed' }),
}

const onWorkers = (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers'

/** Says on which platform for functions this runs, if on one. */
function currentPlatform(): Platform | undefined {
  if (onWorkers) return 'Cloudflare Workers'
  if ('Netlify' in globalThis) return 'Netlify'
  try {
    const { env = {} } = (globalThis as { process?: { env?: Record<string, unknown> } }).process ?? {}
    if (env.VERCEL !== undefined) return 'Vercel'
    if (env.NETLIFY !== undefined) return 'Netlify'
    return env.AWS_LAMBDA_FUNCTION_NAME === undefined ? undefined : 'AWS Lambda'
  } catch {
    // Deno, without the permission to read the environment.
    return undefined
  }
}
