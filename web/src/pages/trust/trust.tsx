export default function Trust() {
  return <h1>Trust</h1>;
}
