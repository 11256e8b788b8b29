import { WebhookError } from '../errors.ts'
import { type EventType, eventTypes } from '../events/catalogue.ts'
import type { ErrorHandler, Handler, HandlerOptions, Handlers } from './handler.ts'

/** A handler under its name. */
export interface Registration {
  readonly name: string
  readonly handler: Handler<never>
  /** `undefined`: every type, the unknown ones too. */
  readonly types: ReadonlySet<string> | undefined
}

/** Which handlers want which events, in the order they were registered. */
export class HandlerRegistry {
  #registrations: readonly Registration[] = []
  #byType = new Map<string, readonly Registration[]>()
  readonly #errorHandlers: ErrorHandler[] = []

  /** @throws WebhookError `invalid_option` */
  constructor(handlers: Handlers = {}) {
    for (const [type, handler] of Object.entries(handlers)) {
      if (handler !== undefined) this.add([type as EventType], handler)
    }
  }

  get errorHandlers(): readonly ErrorHandler[] {
    return this.#errorHandlers
  }

  /** @throws WebhookError `invalid_option` */
  add(types: readonly EventType[] | undefined, handler: Handler<never>, { name }: HandlerOptions = {}): void {
    checkFunction('on', handler)
    if (types?.length === 0) throw new WebhookError('invalid_option', 'on: give at least one event type')
    const unknown = types?.find((type) => !eventTypes.includes(type))
    if (unknown !== undefined) {
      throw new WebhookError('invalid_option', `on: unknown event type ${unknown}; onAny receives events of every type`)
    }
    if (name !== undefined && this.#isTaken(name)) {
      throw new WebhookError('invalid_option', `on: a handler named ${name} is already registered`)
    }
    const registration = { name: name ?? this.#nameFor(handler), handler, types: types && new Set(types) }
    this.#replace([...this.#registrations, registration])
  }

  /** Removes a handler from some types, or wherever it stands. */
  remove(types: readonly EventType[] | undefined, handler: Handler<never>): void {
    this.#replace(
      this.#registrations.flatMap((registration) => {
        if (registration.handler !== handler) return [registration]
        if (types === undefined || registration.types === undefined) return types === undefined ? [] : [registration]
        const left = new Set([...registration.types].filter((type) => !(types as readonly string[]).includes(type)))
        return left.size === 0 ? [] : [{ ...registration, types: left }]
      }),
    )
  }

  handlersFor(type: string): readonly Registration[] {
    const known = this.#byType.get(type)
    if (known !== undefined) return known
    const handlers = this.#registrations.filter(({ types }) => types === undefined || types.has(type))
    // Only the catalogue's types are remembered: a sender can make up any number of others.
    if ((eventTypes as readonly string[]).includes(type)) this.#byType.set(type, handlers)
    return handlers
  }

  handles(type: string): boolean {
    return this.handlersFor(type).length > 0
  }

  addErrorHandler(handler: ErrorHandler): void {
    checkFunction('onError', handler)
    this.#errorHandlers.push(handler)
  }

  #replace(registrations: readonly Registration[]): void {
    this.#registrations = registrations
    this.#byType.clear()
  }

  #nameFor({ name }: Handler<never>): string {
    const base = name || 'handler'
    let candidate = base
    for (let number = 2; this.#isTaken(candidate); number++) candidate = `${base}-${number}`
    return candidate
  }

  #isTaken(name: string): boolean {
    return this.#registrations.some((registration) => registration.name === name)
  }
}

function checkFunction(method: string, handler: unknown): void {
  if (typeof handler !== 'function') throw new WebhookError('invalid_option', `${method}: a handler is a function`)
}
