declare module 'pg-oldest' {
  export { default } from 'pg'
}
