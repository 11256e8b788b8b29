import type { Notice } from '../../../internal/page/notices.tsx'
import type { EmulatedService } from '../service/service.ts'
import type { View } from './view.ts'

export interface PageState {
  readonly service: EmulatedService
  /** The emulator's origin, such as `http://127.0.0.1:4010`. */
  readonly origin: string
  readonly view: View
  readonly notice?: Notice | undefined
  readonly formError?: FormError | undefined
}

export interface FormError {
  /** The action's path below `/page/`, such as `webhooks` or `webhooks/<id>/edit`. */
  readonly action: string
  readonly message: string
  /** The form's input, to show again. */
  readonly typed: URLSearchParams
}

export const typedInto = ({ formError }: PageState, action: string): URLSearchParams | undefined =>
  formError?.action === action ? formError.typed : undefined

export const webhookName = ({ service }: PageState, id: string): string =>
  service.workspace.webhooks.get(id)?.name ?? 'deleted webhook'
