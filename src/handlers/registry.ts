import { WebhookError } from '../errors.ts'
import type { MediaEvent } from '../events/media-service/catalogue.ts'
import { type AnySender, checkTypes, typedBy } from '../events/sender.ts'
import type { AcceptedEvent, ExpectationChanges } from '../inbox/inbox.ts'
import { checkedApart, checkOptions, flag, type Rules, text, wholeNumber } from '../internal/check-options.ts'
import {
  type AcceptLookup,
  checkRule,
  type ExpectationOptions,
  ExpectationRules,
  handlerOfOverdue,
  type OverdueHandler,
  overdueType,
  ruleOf,
} from './expectations.ts'
import type { ErrorHandler, Handler, HandlerOptions } from './handler.ts'
import { Limiter, type Limits, limitRules } from './limits.ts'
import { type RetryOptions, type RetrySchedule, retrySchedule } from './retry.ts'

export interface RegisteredHandler {
  readonly name: string
  /** Called with the event as stored, not yet typed by the sender. */
  readonly handler: Handler<never, never>
  /** What the user registered, for `off`. Absent for an expectation. */
  readonly given?: Handler<never, never> | undefined
  /** `undefined`: every type, unknown ones included. */
  readonly types: readonly string[] | undefined
  readonly tests: boolean
  readonly timeoutMs?: number | undefined
  readonly retry?: RetrySchedule | undefined
  readonly limiter?: Limiter | undefined
}

const rules: Rules<HandlerOptions> = {
  name: text,
  tests: flag,
  timeoutMs: wholeNumber(),
  retry: checkedApart,
  ...limitRules,
}

export class HandlerRegistry {
  readonly expectations = new ExpectationRules()
  readonly #sender: AnySender
  #handlers: readonly RegisteredHandler[] = []
  #overdueHandlers: readonly RegisteredHandler[] = []
  #all: readonly RegisteredHandler[] = []
  #byType = new Map<string, readonly RegisteredHandler[]>()
  readonly #errorHandlers: ErrorHandler[] = []
  readonly #retry: RetryOptions | undefined
  readonly #noLimits: string | undefined

  /**
   * @param retry the receiver's; `undefined` if it does not retry
   * @param noLimits name of the inbox, if it supports no limits
   * @throws WebhookError `invalid_option`
   */
  constructor(
    sender: AnySender,
    handlers: Readonly<Record<string, Handler<never, never> | undefined>> = {},
    retry?: RetryOptions,
    noLimits?: string,
  ) {
    this.#sender = sender
    this.#retry = retry
    this.#noLimits = noLimits
    for (const [type, handler] of Object.entries(handlers)) {
      if (handler !== undefined) this.add([type], handler, {}, 'createReceiver: handlers')
    }
  }

  /** Includes the handlers of expectations. Copy-on-write. */
  get handlers(): readonly RegisteredHandler[] {
    return this.#all
  }

  get errorHandlers(): readonly ErrorHandler[] {
    return this.#errorHandlers
  }

  /** @throws WebhookError `invalid_option` */
  add(
    types: readonly string[] | undefined,
    handler: Handler<never, never>,
    options: HandlerOptions = {},
    owner = 'on',
  ): void {
    checkOptions(owner, options, rules)
    const { name, tests = false, timeoutMs, retry, concurrency, rate } = options
    checkFunction(owner, handler)
    if (types !== undefined) checkTypes(owner, types, this.#sender, '; onAny receives events of every type')
    this.#checkName(owner, name)
    const schedule = retry === undefined ? undefined : this.#makeSchedule(retry)
    const limiter = this.#makeLimiter({ concurrency, rate })
    const settings = { types, tests, timeoutMs, retry: schedule, limiter }
    const call = { handler: this.#typed(handler), given: handler }
    this.#replace([
      ...this.#handlers,
      { name: name ?? this.#nameFor(handler, types?.join(',') ?? 'onAny'), ...call, ...settings },
    ])
  }

  /** @throws WebhookError `invalid_option` */
  addExpectation(
    types: readonly string[],
    options: ExpectationOptions<string>,
    overdueHandler: OverdueHandler<never, never>,
    accept: AcceptLookup,
  ): void {
    checkRule(options)
    checkFunction('expect', overdueHandler)
    const name = options.name ?? this.#nameFor(overdueHandler, 'overdue')
    this.#checkName('expect', name)
    this.expectations.add(name, types, options, this.#sender)
    const handler = handlerOfOverdue(overdueHandler, accept, this.#sender)
    this.#overdueHandlers = [...this.#overdueHandlers, { name, handler, types: [overdueType], tests: false }]
    this.#replace(this.#handlers)
  }

  #typed(handler: Handler<never, never>): Handler<never, never> {
    const sender = this.#sender
    if (sender.typed === undefined) return handler
    return (event: MediaEvent, context) => handler(typedBy(sender, event) as never, context)
  }

  #checkName(method: string, name: string | undefined): void {
    if (this.#isTaken(name))
      throw new WebhookError('invalid_option', `${method}: a handler named ${name} is already registered`)
  }

  #makeSchedule(retry: RetryOptions): RetrySchedule {
    if (this.#retry !== undefined) return retrySchedule(retry, this.#retry)
    throw new WebhookError('invalid_option', "on: retry has no effect with ack 'handled'")
  }

  #makeLimiter(limits: Limits): Limiter | undefined {
    if (limits.concurrency === undefined && limits.rate === undefined) return undefined
    if (this.#noLimits === undefined) return new Limiter(limits)
    throw new WebhookError('invalid_option', `on: concurrency and rate have no effect with ${this.#noLimits}`)
  }

  /** Removes a handler from the given types, or from all without `types`. */
  remove(types: readonly string[] | undefined, handler: Handler<never, never> | undefined): void {
    if (types !== undefined) checkTypes('off', types, this.#sender)
    checkFunction('off', handler)
    const affected = this.#handlers.filter(({ given }) => given === handler)
    this.#replace(
      this.#handlers.flatMap((registered) => {
        if (registered.given !== handler) return [registered]
        if (types === undefined || registered.types === undefined) return types === undefined ? [] : [registered]
        const remaining = registered.types.filter((type) => !types.includes(type))
        return remaining.length === 0 ? [] : [{ ...registered, types: remaining }]
      }),
    )
    for (const { limiter } of affected) limiter?.wakeAll()
  }

  /** Handlers of an accepted event. For an overdue event: the one of its rule. */
  handlersOf(event: MediaEvent): readonly RegisteredHandler[] {
    const rule = ruleOf(event)
    if (rule === undefined) return this.handlersFor(event.type, event.test)
    return this.#overdueHandlers.filter(({ name }) => name === rule)
  }

  expectationChanges(accepted: AcceptedEvent): ExpectationChanges | undefined {
    return this.#overdueHandlers.length === 0 ? undefined : this.expectations.expectationChanges(accepted)
  }

  /** @param test only the handlers registered with `tests: true` */
  handlersFor(type: string, test = false): readonly RegisteredHandler[] {
    if (test) return this.handlersFor(type).filter(({ tests }) => tests)
    const known = this.#byType.get(type)
    if (known !== undefined) return known
    const handlers = this.#handlers.filter(({ types }) => types?.includes(type) ?? true)
    // Cache only catalogue types: a sender can make up others forever.
    if (this.#sender.types.includes(type)) this.#byType.set(type, handlers)
    return handlers
  }

  handles(type: string, test?: boolean): boolean {
    return this.handlersFor(type, test).length > 0 || (!test && this.expectations.mention(type))
  }

  addErrorHandler(handler: ErrorHandler): void {
    checkFunction('onError', handler)
    this.#errorHandlers.push(handler)
  }

  #replace(handlers: readonly RegisteredHandler[]): void {
    this.#handlers = handlers
    this.#all = [...handlers, ...this.#overdueHandlers]
    this.#byType.clear()
  }

  #nameFor({ name }: { readonly name: string }, otherwise: string): string {
    const base = name || otherwise
    let candidate = base
    for (let number = 2; this.#isTaken(candidate); number++) candidate = `${base}-${number}`
    return candidate
  }

  #isTaken(name: string | undefined): boolean {
    return this.#all.some((registered) => registered.name === name)
  }
}

function checkFunction(method: string, handler: unknown): void {
  if (typeof handler !== 'function')
    throw new WebhookError('invalid_option', `${method}: the handler must be a function`)
}
