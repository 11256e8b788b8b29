import { checkUnknown } from '../check-options.ts'
import { WebhookError } from '../errors.ts'
import { type EventType, eventTypes } from '../events/catalogue.ts'
import type { ErrorHandler, Handler, HandlerOptions, Handlers } from './handler.ts'

/** A handler and its name. */
export interface RegisteredHandler {
  readonly name: string
  readonly handler: Handler<never, never>
  /** `undefined` for every type, unknown ones included. */
  readonly types: readonly string[] | undefined
  /** `true` if it runs for test deliveries as well. */
  readonly tests: boolean
}

/** The registered handlers, in the order of their registration. */
export class HandlerRegistry {
  #handlers: readonly RegisteredHandler[] = []
  #byType = new Map<string, readonly RegisteredHandler[]>()
  readonly #errorHandlers: ErrorHandler[] = []

  /** @throws WebhookError `invalid_option` */
  constructor(handlers: Handlers<never> = {}) {
    for (const [type, handler] of Object.entries(handlers)) {
      if (handler !== undefined) this.add([type as EventType], handler)
    }
  }

  /** Another array after each change. */
  get handlers(): readonly RegisteredHandler[] {
    return this.#handlers
  }

  get errorHandlers(): readonly ErrorHandler[] {
    return this.#errorHandlers
  }

  /** @throws WebhookError `invalid_option` */
  add(types: readonly EventType[] | undefined, handler: Handler<never, never>, options: HandlerOptions = {}): void {
    const { name, tests = false, ...others } = options
    checkUnknown('on', others)
    checkFunction('on', handler)
    if (name !== undefined && (typeof name !== 'string' || name === '')) {
      throw new WebhookError('invalid_option', 'on: name has to be a non-empty string')
    }
    if (types?.length === 0) throw new WebhookError('invalid_option', 'on: give at least one event type')
    const unknown = types?.find((type) => !eventTypes.includes(type))
    if (unknown !== undefined) {
      throw new WebhookError('invalid_option', `on: unknown event type ${unknown}; onAny receives events of every type`)
    }
    if (this.#isTaken(name)) {
      throw new WebhookError('invalid_option', `on: a handler named ${name} is already registered`)
    }
    const registered = { name: name ?? this.#nameFor(handler), handler, types, tests }
    this.#replace([...this.#handlers, registered])
  }

  /** Removes a handler from the given types or, without `types`, from all types. */
  remove(types: readonly EventType[] | undefined, handler: Handler<never, never>): void {
    this.#replace(
      this.#handlers.flatMap((registered) => {
        if (registered.handler !== handler) return [registered]
        if (types === undefined || registered.types === undefined) return types === undefined ? [] : [registered]
        const left = registered.types.filter((type) => !(types as readonly string[]).includes(type))
        return left.length === 0 ? [] : [{ ...registered, types: left }]
      }),
    )
  }

  /** @param test `true` for a test delivery, which only the handlers that ask for it get */
  handlersFor(type: string, test = false): readonly RegisteredHandler[] {
    if (test) return this.handlersFor(type).filter(({ tests }) => tests)
    const known = this.#byType.get(type)
    if (known !== undefined) return known
    const handlers = this.#handlers.filter(({ types }) => types?.includes(type) ?? true)
    // Only the catalogue's types are cached: a sender can make up any number of others.
    if ((eventTypes as readonly string[]).includes(type)) this.#byType.set(type, handlers)
    return handlers
  }

  handles(type: string, test?: boolean): boolean {
    return this.handlersFor(type, test).length > 0
  }

  addErrorHandler(handler: ErrorHandler): void {
    checkFunction('onError', handler)
    this.#errorHandlers.push(handler)
  }

  #replace(handlers: readonly RegisteredHandler[]): void {
    this.#handlers = handlers
    this.#byType.clear()
  }

  #nameFor({ name }: Handler<never, never>): string {
    const base = name || 'handler'
    let candidate = base
    for (let number = 2; this.#isTaken(candidate); number++) candidate = `${base}-${number}`
    return candidate
  }

  #isTaken(name: string | undefined): boolean {
    return this.#handlers.some((registered) => registered.name === name)
  }
}

function checkFunction(method: string, handler: unknown): void {
  if (typeof handler !== 'function') throw new WebhookError('invalid_option', `${method}: a handler is a function`)
}
